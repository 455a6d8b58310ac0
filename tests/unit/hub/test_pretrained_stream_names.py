"""Streamed block by block with any names: the numbers, or the error, of the model in memory."""

import dataclasses
import functools
from pathlib import Path

import pytest
import torch
from causal_architectures import lists_of, model_of
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import all_batches, in_memory, random_model, save, to_stream
from properties import examples
from torch import nn

from normscope.errors import Explained
from normscope.hub.architecture import Body, find_body
from normscope.hub.loading import Loaded
from normscope.hub.measurement import Outcome, rows

KINDS = ("gpt2", "llama", "opt_post", "nanochat")  # without a final norm; with one used twice


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    @functools.cache
    def load(kind: str) -> tuple[Loaded, Loaded]:
        model = model_of(kind) if kind == "nanochat" else random_model(kind)
        directory: Path = save(model, tmp_path_factory.mktemp(kind))
        return in_memory(directory), to_stream(directory)

    return load


def found(loaded: Loaded, blocks: str | None, final_norm: str | None) -> list[Outcome] | str:
    try:
        body = find_body(loaded.model, blocks, final_norm)
    except Explained as e:
        return str(e)
    return measured(loaded, body)


def measured(loaded: Loaded, body: Body) -> list[Outcome] | str:
    """The outcomes, or the message of the error."""
    named = dataclasses.replace(loaded, body=body)
    try:
        outcomes = list(named.outcomes(all_batches(loaded)[-1:]))
        rows(outcomes, body, loaded.tokenizer)
    except Explained as e:
        return str(e)
    finally:
        hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in loaded.model.modules()]
        assert sum(hooks) == 0
    return outcomes


def check(resident: Loaded, streamed: Loaded, blocks: str | None, final_norm: str | None) -> None:
    expected = found(resident, blocks, final_norm)
    ours = found(streamed, blocks, final_norm)
    if isinstance(expected, str) or isinstance(ours, str):
        assert ours == expected
        return
    for one, other in zip(ours, expected, strict=True):
        mask = one.batch.mask.bool()
        torch.testing.assert_close(
            one.norms[:, mask], other.norms[:, mask], rtol=1e-5, atol=0, equal_nan=True
        )


@pytest.mark.parametrize("final_norm", [None, "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_streams_what_it_gives_in_memory(both, kind, final_norm):
    resident, streamed = both(kind)
    check(resident, streamed, None, final_norm)


ARRANGED = {
    "the last does not run": (lambda blocks, unused: [*blocks, unused], "name.4", "in its turn"),
    "the first does not run": (lambda blocks, unused: [unused, *blocks], "name.1", "out of order"),
    "one does not run": (lambda b, unused: [*b[:2], unused, *b[2:]], "name.3", "out of order"),
    "another order": (lambda b, _: [b[0], b[2], b[1], b[3]], "name.2", "out of order"),
    "one is left out": (lambda b, _: [b[0], b[1], b[3]], "name.2", "("),
    "one is named twice": (lambda b, _: [b[0], b[0], *b[1:]], "name.1", "out of order"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arrangement", ARRANGED)
def test_blocks_that_do_not_run_in_turn_are_named(both, kind, arrangement):
    arrange, name, reason = ARRANGED[arrangement]
    for loaded in both(kind):
        body = loaded.body
        blocks = arrange(list(body.blocks), nn.Linear(1, 1))
        for final_norm in (None, body.final_norm):
            names = [f"name.{i}" for i in range(len(blocks))] + ["final"] * (final_norm is not None)
            message = measured(loaded, Body(blocks, final_norm, names))
            assert isinstance(message, str)
            assert message.startswith(f"{name} is not a block of the residual stream")
            assert reason in message


@given(data=st.data())
@examples(15)
def test_any_names_stream_what_they_give_in_memory(both, data):
    resident, streamed = both(data.draw(st.sampled_from(KINDS)))
    names = [name for name, _ in resident.model.named_modules() if name]
    blocks = data.draw(st.sampled_from([None, *lists_of(resident.model)]))
    final_norm = data.draw(st.sampled_from([None, "none", *names]))
    check(resident, streamed, blocks, final_norm)
