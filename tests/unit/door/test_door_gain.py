"""The residual gain in memory: against the workflow's probe, and against hidden states."""

import math

import pandas as pd
import pytest
import torch
from pretrained_hub import Job, measure
from pretrained_models import (
    config_of,
    from_directory,
    prompts,
    random_model,
    save,
    stock,
    tokenizer,
)
from torch import nn
from transformers import AutoModel, AutoModelForCausalLM

import normscope

TEXTS = ["The capital of France is", "a", "To be, or not to be"]


def test_the_numbers_are_those_of_the_probe(tmp_path):
    kinds = ("gpt2", "llama")
    models = {kind: save(random_model(kind), tmp_path / "models" / kind) for kind in kinds}
    jobs = [
        Job(tmp_path / kind, from_directory(folder).model_dump(), tmp_path / "revisions")
        for kind, folder in models.items()
    ]
    assert measure(jobs, tmp_path / "home") == [0, 0]
    texts = {p.name: p.text for p in prompts()}
    for job, folder in zip(jobs, models.values(), strict=True):
        theirs = pd.read_csv(job.out / "norms.csv").query("prompt in @texts")
        theirs = theirs.assign(prompt=theirs["prompt"].map(texts))
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
        ours = normscope.gain(model, tokenizer(), texts.values()).drop(columns="gain")
        key = ["prompt", "bos", "positions", "depth"]
        ours, theirs = (t.sort_values(key, ignore_index=True) for t in (ours, theirs))
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["gpt2", "gemma", "qwen2"])
def test_gains_are_those_of_hidden_states(kind, tmp_path):
    """transformers' states: the embedding, all blocks but the last, and then the final norm."""
    model = stock(save(random_model(kind), tmp_path / "model"))
    made = tokenizer()
    table = normscope.gain(model, made, TEXTS).set_index(["prompt", "bos", "positions"])
    for text in TEXTS:
        for bos in ("on", "off"):
            ids = [1] * (bos == "on") + made(text, add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
            norms = torch.stack([s[0].double().norm(dim=-1) for s in states[:-1]])  # (sites, T)
            ratio = norms[1:] / norms[:-1]
            expected = {"first": ratio[:, 0], "last": ratio[:, -1]}
            expected["later"] = ratio[:, 1:].log().mean(1).exp()
            for positions, gains in expected.items():
                rows = table.loc[(text, bos, positions)]
                blocks = rows["gain"].to_numpy()[1:-2]  # less the embedding, last block, final norm
                assert blocks == pytest.approx(gains.numpy(), rel=1e-5, nan_ok=True)


def test_the_model_stays_as_it_is_and_its_dropout_is_off():
    model = random_model("gpt2", resid_pdrop=0.5, embd_pdrop=0.5).train()
    model.transformer.h[1].eval()
    before = {name: m.training for name, m in model.named_modules()}
    first, again = (normscope.gain(model, tokenizer(), TEXTS) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert {name: m.training for name, m in model.named_modules()} == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert list(dict.fromkeys(first["prompt"])) == TEXTS


def not_finite() -> nn.Module:
    model = random_model("gpt2")
    model.transformer.h[0].mlp.c_fc.bias.fill_(math.nan)
    return model


@pytest.mark.parametrize(
    ("model", "texts", "words"),
    [
        (lambda: random_model("gpt2"), [], "no prompts"),
        (lambda: random_model("gpt2"), ["a", ""], "''"),
        (lambda: random_model("gpt2"), ["a", "b", "a"], "twice: a"),
        (lambda: random_model("gpt2"), ["a " * 200], "64 positions"),
        (lambda: nn.Linear(2, 2), ["a"], "Linear"),
        (lambda: AutoModel.from_config(config_of("gpt2")), ["a"], "GPT2Model"),
        (lambda: random_model("gpt2", n_layer=0), ["a"], "no blocks"),
        (not_finite, ["a"], "block_0"),
    ],
)
def test_what_cannot_be_measured_is_an_error(model, texts, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.gain(model(), tokenizer(), texts)
