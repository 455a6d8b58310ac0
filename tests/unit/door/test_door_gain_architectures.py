"""The residual gain of every causal architecture of transformers, with any names.

Numbers are those of a trace of all modules, and of transformers' own hidden states; what the trace
does not show to be a residual stream is refused.
"""

import functools
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
import torch
from causal_architectures import (
    BUILT,
    LAYERS,
    TYPES,
    UNBUILT,
    Trace,
    expected_norms,
    lists_of,
    model_of,
    sees_later_tokens,
)
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import norm, tokenizer
from properties import examples
from torch import Tensor

import normscope
from normscope.hub.architecture import find_body

TEXTS = ["The capital of France is", "To be, or not"]
# an encoder's class, four streams, a norm used twice, experts, a recurrence, a skipped block,
# no final norm, two streams, one that is not causal
SAMPLE = ("bert deepseek_v4 gpt2 mamba mixtral mllama nanochat openai-gpt reformer xlnet").split()
TWO_STREAMS = ("reformer",)  # its blocks pass one on as the trace sees it, and another one
CLOSE = 1e-4  # relative
STRANGE = ["", ".", "nowhere", "model..norm", "config", "forward", "None", "lm_head.weight", "ä"]


@functools.cache
def traces(kind: str) -> dict[tuple[str, str], Trace]:
    """By prompt and BOS."""
    made, found = tokenizer(), {}
    for text in TEXTS:
        ids = made(text, add_special_tokens=False)["input_ids"]
        found[text, "off"] = Trace(model_of(kind), ids)
        found[text, "on"] = Trace(model_of(kind), [1, *ids])
    return found


@functools.cache
def is_causal(kind: str) -> bool:
    return not sees_later_tokens(model_of(kind))


@functools.cache
def names_of(kind: str) -> list[str]:
    return [name for name, _ in model_of(kind).named_modules() if name]


def streams(kind: str, blocks: str, final_norm: str) -> dict[tuple[str, str], list[Tensor]] | None:
    """The stream of every prompt, or None if the modules of these names do not pass one on."""
    if not is_causal(kind) or kind in TWO_STREAMS:
        return None
    found = {key: trace.stream(blocks, final_norm) for key, trace in traces(kind).items()}
    return {k: v for k, v in found.items() if v} if all(found.values()) else None


def measured(kind: str, **names: str | None) -> pd.DataFrame | str:
    """The table, or the message of the error."""
    try:
        return normscope.gain(model_of(kind), tokenizer(), TEXTS, **names)
    except normscope.Explained as e:
        return str(e)


def check(kind: str, blocks: str | None = None, final_norm: str | None = None) -> bool:
    """Whether the names are measured; they are exactly if they name a stream, as the trace says."""
    table = measured(kind, blocks=blocks, final_norm=final_norm)
    if isinstance(table, str):
        assert "\n" not in table
        assert (
            type(model_of(kind)).__name__ in table
            or "key final_norm" in table
            or ("residual gain" in table)
        )
        if blocks is not None and final_norm is not None:
            assert streams(kind, blocks, final_norm) is None, table
        return False
    found = find_body(model_of(kind), blocks, final_norm).names
    last = found[-1] if len(found) > LAYERS else "none"
    expected = streams(kind, found[0].rpartition(".")[0], last)
    assert expected is not None, (blocks, final_norm)
    compare(table, expected)
    return True


def compare(table: pd.DataFrame, expected: dict[tuple[str, str], list[Tensor]]) -> None:
    rows: Any = table.set_index(["prompt", "bos", "positions"])
    for (text, bos), sites in expected.items():
        for positions in ("first", "last", "later"):
            of_sites = rows.loc[(text, bos, positions)].sort_values("depth")
            norms = expected_norms(sites, positions)
            assert of_sites["norm"].to_numpy() == pytest.approx(norms.numpy(), rel=CLOSE)
            gains = (norms[1:] / norms[:-1]).numpy()
            assert of_sites["gain"].to_numpy()[1:] == pytest.approx(gains, rel=CLOSE)


def check_hidden_states(kind: str, final_norm: str) -> None:
    """transformers' states: the embedding, all blocks but the last, and then the final norm.

    Those of Mamba, its kin and RWKV lack the embedding.
    """
    (blocks,) = [b for b in lists_of(model_of(kind)) if streams(kind, b, final_norm)]
    table = measured(kind, blocks=blocks, final_norm=final_norm)
    assert not isinstance(table, str), table
    rows: Any = table.set_index(["prompt", "bos", "positions"])
    for (text, bos), trace in traces(kind).items():
        assert trace.hidden_states is not None
        states = torch.stack([norm(state[0, -1]) for state in trace.hidden_states[:LAYERS]])
        ours = rows.loc[(text, bos, "last")].sort_values("depth")["norm"].to_numpy()
        start = int(any(word in kind for word in ("mamba", "rwkv")))
        assert ours[start : start + LAYERS] == pytest.approx(states.numpy(), rel=CLOSE)


def of_every_kind(function: Any) -> Any:
    """A few kinds in every run, the others in long ones."""
    kinds = [pytest.param(kind, marks=[] if kind in SAMPLE else pytest.mark.long) for kind in BUILT]
    return pytest.mark.parametrize("kind", kinds)(function)


@of_every_kind
def test_an_architecture_is_measured_as_it_is_or_refused(kind):
    """By the known names, by all lists of blocks, by all norms, and by modules of all sorts."""
    check(kind)
    names = names_of(kind)
    norms = [name for name in names if "norm" in name.lower() or "ln" in name]
    sparse = names[:: max(1, len(names) // 4)]
    lists = lists_of(model_of(kind))
    tried = [
        (blocks, final_norm)
        for blocks in lists[:3]
        for final_norm in ("none", *norms[-3:], *sparse)
    ]
    done = [(b, f) for b, f in tried if check(kind, b, f)]
    possible = [(b, f) for b, f in tried if streams(kind, b, f)]
    assert done == possible
    if (possible or [(None, "")])[0][1] == "none":
        check_hidden_states(kind, "none")


def test_types_are_measured_in_numbers_that_are_known():
    """All types that this version of transformers has are tried, or listed with a reason."""
    assert set(UNBUILT) <= set(TYPES)
    assert len(BUILT) + len(UNBUILT) == len(TYPES)
    assert set(SAMPLE) <= set(BUILT)


def names(kind: str, extra: Sequence[str | None]) -> st.SearchStrategy[str | None]:
    return st.sampled_from([*extra, *names_of(kind)])


@given(data=st.data())
@examples(60)
def test_any_names_are_right_or_refused(data):
    kind = data.draw(st.sampled_from(SAMPLE))
    lists = lists_of(model_of(kind))
    blocks = data.draw(st.one_of(st.sampled_from([None, *lists]), names(kind, STRANGE)))
    final_norm = data.draw(names(kind, [None, "none", *STRANGE]))
    check(kind, blocks, final_norm)
