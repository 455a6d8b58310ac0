"""The residual gain in memory: against hooks of its modules, and against the workflow's probe."""

import itertools
import math
from functools import partial
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from pretrained_models import (
    LAYERS,
    Job,
    config_of,
    from_directory,
    measure,
    norm,
    prompts,
    random_model,
    save,
    tokenizer,
)
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

import normscope
from normscope.hub.architecture import find_body

TEXTS = ["The capital of France is", "a", "To be, or not to be"]
# a well-known one, no final norm (two), an encoder's class as a decoder, a norm used twice,
# experts, a recurrence
MEASURED = "gpt2 bart openai-gpt bert nanochat mixtral mamba".split()
# halves its stream between blocks, four streams, two streams, not causal
REFUSED = "rwkv deepseek_v4 reformer xlnet".split()
STRANGE = ["", ".", "nowhere", "model..norm", "config", "forward", "lm_head.weight", "ä"]


def passing(model: nn.Module, names: list[str], ids: list[int]) -> list[Tensor]:
    """The norms (positions,) at every site of one prompt, by hooks of the named modules.

    Each block is called once. Each module takes the output of the module before it in its last
    call.
    """
    calls: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in names}

    def keep(name: str, _: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        given = output[0] if isinstance(output, tuple | list) else output
        given = getattr(given, "last_hidden_state", given)
        taken = args[0] if args else kwargs["hidden_states"]
        calls[name].append((taken.clone(), given.clone()))

    handles = [
        model.get_submodule(name).register_forward_hook(partial(keep, name), with_kwargs=True)
        for name in names
    ]
    with torch.inference_mode():
        model(input_ids=torch.tensor([ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    assert all(len(calls[name]) == 1 for name in names[:LAYERS])
    sites = [calls[names[0]][0][0]]
    for name in names:
        taken, given = calls[name][-1]
        torch.testing.assert_close(taken, sites[-1])
        sites.append(given)
    return [norm(site[0]) for site in sites]


@pytest.mark.parametrize("kind", MEASURED + REFUSED)
def test_the_gain_is_that_of_the_residual_stream_or_the_names_are_refused(kind):
    """The known names, all lists of blocks, norms, other modules, and names of no module."""
    model, ids = random_model(kind), tokenizer()
    names = [name for name, _ in model.named_modules() if name]
    lists = [n for n in names if n.endswith(("h", "layers", "layer", "blocks"))]
    norms = [n for n in names if "norm" in n or "ln" in n]
    tried = [
        (blocks, final_norm)
        for blocks in (*lists[:3], None, "nowhere")
        for final_norm in (None, "none", *norms[-3:], *names[:: len(names) // 4], *STRANGE)
    ]
    measured = 0
    for blocks, final_norm in tried:
        try:
            table = normscope.gain(model, ids, TEXTS, blocks=blocks, final_norm=final_norm)
        except normscope.Explained:
            continue
        measured += 1
        body = find_body(model, blocks, final_norm)
        modules = list(body.names[: LAYERS + (body.final_norm is not None)])
        rows: Any = table.set_index(["prompt", "bos", "positions"])
        for text, (bos, start) in itertools.product(TEXTS, {"off": [], "on": [1]}.items()):
            tokens = [*start, *ids(text, add_special_tokens=False)["input_ids"]]
            at = torch.stack(passing(model, modules, tokens))
            later = at[:, 1:].log().mean(1).exp()
            wanted = {"first": at[:, 0], "last": at[:, -1], "later": later}
            for positions, expected in wanted.items():
                ours = rows.loc[(text, bos, positions)].sort_values("depth")
                assert ours["norm"].to_numpy() == pytest.approx(expected.numpy(), 1e-4, nan_ok=True)
                gains = (expected[1:] / expected[:-1]).numpy()
                assert ours["gain"].to_numpy()[1:] == pytest.approx(gains, 1e-4, nan_ok=True)
    assert bool(measured) == (kind in MEASURED)


def test_the_numbers_are_those_of_the_probe(tmp_path):
    texts = {p.name: p.text for p in prompts()}
    for kind in ("gpt2", "llama"):
        folder = save(random_model(kind), tmp_path / "models" / kind)
        job = Job(tmp_path / kind, from_directory(folder).model_dump(), tmp_path / "revisions")
        measure(job, tmp_path / "home")
        probed = pd.read_csv(job.out / "norms.csv").query("prompt in @texts")
        probed = probed.assign(prompt=probed["prompt"].map(texts))
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
        ours = normscope.gain(model, tokenizer(), texts.values()).drop(columns="gain")
        key = ["prompt", "bos", "positions", "depth"]
        ours, probed = (t.sort_values(key, ignore_index=True) for t in (ours, probed))
        pd.testing.assert_frame_equal(ours, probed, rtol=1e-6, atol=1e-6)


def test_the_model_is_not_changed_and_its_dropout_is_off():
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


def zero_embedding(token: int) -> nn.Module:
    model = random_model("gpt2")
    model.transformer.wte.weight[token] = 0
    model.transformer.wpe.weight.zero_()
    return model


def on_meta() -> nn.Module:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config_of("gpt2"))


GPT2 = partial(random_model, "gpt2")
ERRORS: dict[str, tuple] = {
    "the first norm": (GPT2, {"final_norm": "transformer.h.0.ln_1"}, "not run after the last bl"),
    "an encoder's configuration": (
        lambda: random_model("bert", is_decoder=False),
        {"blocks": "bert.encoder.layer", "final_norm": "none"},
        "not a causal .*is_decoder False",
    ),
    "an encoder-decoder": (
        lambda: transformers.BartForConditionalGeneration(config_of("bart")),
        {"blocks": "model.decoder.layers", "final_norm": "none"},
        "not a causal .*AutoModelForCausalLM",
    ),
    "bidirectional": (
        lambda: random_model("gemma", use_bidirectional_attention=True),
        {},
        "use_bidirectional_attention True",
    ),
    "no values": (on_meta, {}, r"transformer\.wte\.weight of GPT2LMHeadModel is on the device m"),
    "NaN": (not_finite, {}, "block_0: .* position 0, .* not finite: load the model in float32"),
    "a zero row": (
        lambda: zero_embedding(tokenizer()("b", add_special_tokens=False)["input_ids"][0]),
        {"prompts": ["b"]},
        "position 1, token 'b', of the prompt 'b' is 0, .* leave this token out",
    ),
    "no prompts": (GPT2, {"prompts": []}, "no prompts"),
    "an empty prompt": (GPT2, {"prompts": ["a", ""]}, "''"),
    "a long prompt": (GPT2, {"prompts": ["a " * 200]}, "64 positions"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_cannot_be_measured_is_an_error_of_one_line(case):
    make, changes, words = ERRORS[case]
    arguments = {"tokenizer": tokenizer(), "prompts": ["a"]} | changes
    with pytest.raises(normscope.Explained, match=words) as e:
        normscope.gain(make(), **arguments)
    assert "\n" not in str(e.value)
    assert not torch.is_inference_mode_enabled()
