"""The residual gain in memory: against the workflow's probe, and against hidden states."""

import math
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from pretrained_hub import Job, measure
from pretrained_models import (
    config_of,
    from_directory,
    perturb,
    prompts,
    random_model,
    save,
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
    for job in jobs:
        measure(job, tmp_path / "home")
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


def test_the_model_is_not_changed_and_its_dropout_is_off():
    model = random_model("gpt2", resid_pdrop=0.5, embd_pdrop=0.5).train()
    model.transformer.h[1].eval()
    before = {name: m.training for name, m in model.named_modules()}
    first, again = (normscope.gain(model, tokenizer(), TEXTS) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert {name: m.training for name, m in model.named_modules()} == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert list(dict.fromkeys(first["prompt"])) == TEXTS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("transformer.wte", "it does not run after the last block"),
        ("transformer.h.0.ln_1", "it does not run after the last block"),
        ("transformer.h.3", "it does not run after the last block"),
        ("lm_head", "what enters it is not the output of transformer.h.3"),
    ],
)
def test_a_module_that_is_not_the_final_norm_is_an_error_that_names_it(name, reason):
    """Recorded in the order in which modules run, every site moved by one without an error."""
    with pytest.raises(normscope.Explained) as e:
        normscope.gain(random_model("gpt2"), tokenizer(), TEXTS, final_norm=name)
    assert str(e.value).startswith(f"{name} is not the norm after the last block ({reason}")
    assert "key final_norm, or set final_norm to none" in str(e.value)


def bart(**changes) -> Any:
    """Of a depth that its encoder does not have, as DistilBART."""
    sizes = {"d_model": 24, "decoder_layers": 4, "encoder_layers": 2, "vocab_size": 400}
    heads = {"decoder_attention_heads": 4, "encoder_attention_heads": 4}
    ids = {"pad_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
    ids |= {"decoder_start_token_id": 2, "forced_eos_token_id": None}
    return transformers.BartConfig(**(sizes | heads | ids), **changes)


def bert(**changes) -> Any:
    sizes = {"hidden_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4}
    return transformers.BertConfig(**sizes, intermediate_size=24, vocab_size=400, **changes)


def test_a_model_without_a_final_norm_is_measured_with_none():
    """Bart's decoder norms within its blocks; its embedding has a norm that is easily taken."""
    model = perturb(AutoModelForCausalLM.from_config(bart()))
    with pytest.raises(normscope.Explained, match="set final_norm to none if it has none"):
        normscope.gain(model, tokenizer(), TEXTS)
    taken = "model.decoder.layernorm_embedding"
    with pytest.raises(normscope.Explained, match=f"{taken} is not the norm after the last block"):
        normscope.gain(model, tokenizer(), TEXTS, final_norm=taken)
    table = normscope.gain(model, tokenizer(), TEXTS, final_norm="none")
    assert list(dict.fromkeys(table["site"])) == ["embedding", *(f"block_{i}" for i in range(4))]
    ids = tokenizer()(TEXTS[0], add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        states = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    ours = table.query("prompt == @TEXTS[0] and bos == 'off' and positions == 'last'")
    expected = [float(s[0, -1].double().norm()) for s in states.hidden_states]
    assert ours["norm"].tolist() == pytest.approx(expected, rel=1e-5)


def test_none_leaves_out_a_final_norm_and_nothing_else():
    model = random_model("llama")
    whole = normscope.gain(model, tokenizer(), TEXTS)
    table = normscope.gain(model, tokenizer(), TEXTS, final_norm="none")
    rest = whole[whole["site"] != "final_norm"].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, rest)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: transformers.BertLMHeadModel(bert()), "is_decoder False"),
        (lambda: transformers.BertForMaskedLM(bert()), "AutoModelForCausalLM"),
        (lambda: transformers.BertForMaskedLM(bert(is_decoder=True)), "AutoModelForCausalLM"),
        (lambda: transformers.BartForConditionalGeneration(bart()), "AutoModelForCausalLM"),
        (
            lambda: transformers.T5ForConditionalGeneration(
                transformers.T5Config(d_model=24, d_kv=6, d_ff=24, num_layers=2, num_heads=4)
            ),
            "AutoModelForCausalLM",
        ),
        (
            lambda: random_model("gemma", use_bidirectional_attention=True),
            "use_bidirectional_attention True",
        ),
        (lambda: random_model("llama", is_causal=False), "is_causal False"),
    ],
)
def test_a_model_that_is_not_causal_is_refused_whatever_names_are_given(model, words):
    made = model().eval()
    kind = type(made).__name__
    lists = [name for name, m in made.named_modules() if isinstance(m, nn.ModuleList)]
    for names in ({}, {"blocks": lists[0], "final_norm": "none"}):
        with pytest.raises(normscope.Explained, match=rf"{kind} is not a causal .*{words}"):
            normscope.gain(made, tokenizer(), TEXTS, **names)


def test_a_stream_that_changes_between_blocks_is_refused():
    """RWKV halves its stream after every few blocks: the ratio of outputs is half the gain."""
    sizes: Any = {"hidden_size": 24, "num_hidden_layers": 4, "vocab_size": 400}
    names = {"blocks": "rwkv.blocks", "final_norm": "rwkv.ln_out"}
    model = perturb(transformers.RwkvForCausalLM(transformers.RwkvConfig(**sizes, rescale_every=2)))
    with pytest.raises(
        normscope.Explained, match=r"rwkv.blocks.2 is not .*output of rwkv.blocks.1"
    ):
        normscope.gain(model, tokenizer(), TEXTS, **names)
    model = perturb(transformers.RwkvForCausalLM(transformers.RwkvConfig(**sizes, rescale_every=0)))
    assert len(normscope.gain(model, tokenizer(), TEXTS, **names))


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


def on_meta() -> nn.Module:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config_of("gpt2"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer": None}, "tokenizer is of type NoneType: give what AutoTokenizer loads"),
        ({"prompts": [1, 2]}, "prompts has 1, which is not a text"),
        ({"prompts": None}, "prompts is None: give a list of texts"),
        ({"prompts": b"abc"}, "prompts has 97"),
        ({"prompts": ["\ud800"]}, "half of a surrogate pair"),
        ({"model": on_meta}, r"transformer\.wte\.weight of GPT2LMHeadModel is on the device meta"),
        ({"model": lambda: None}, "NoneType is not a causal language model"),
        ({"blocks": 3}, "blocks is 3: give the dotted name of a module"),
        ({"final_norm": False}, "final_norm is False"),
        ({"final_norm": ""}, "key final_norm"),
        ({"blocks": ""}, "key blocks"),
    ],
)
def test_a_wrong_argument_is_an_error_of_one_line(changes, words):
    arguments = {"model": lambda: random_model("gpt2"), "tokenizer": tokenizer(), "prompts": ["a"]}
    arguments |= changes
    arguments["model"] = arguments["model"]()
    with pytest.raises(normscope.Explained, match=words) as e:
        normscope.gain(**arguments)
    assert "\n" not in str(e.value)
