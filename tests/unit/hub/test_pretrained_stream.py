"""Norms, gains and logits of real classes, against transformers' own hidden states and hooks."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrained_models import (
    KINDS,
    all_batches,
    in_memory,
    norm,
    outcomes,
    random_model,
    save,
    stock,
)
from torch import Tensor

from normscope.hub.loading import Loaded
from normscope.hub.measurement import Outcome, gain_metrics, rows
from normscope.studies.pretrained.measures import METRICS

CLOSE = 1e-5  # relative; of logits, to their norm


@dataclass(frozen=True)
class Alone:
    """One prompt through the stock model: no batch, no padding, no mask.

    ``entered`` and ``left`` are what each block takes and gives (blocks, positions, width).
    """

    entered: Tensor
    left: Tensor
    hidden: tuple[Tensor, ...]
    logits: Tensor


@dataclass(frozen=True)
class Measured:
    directory: Path
    loaded: Loaded
    stock: Any
    outcomes: list[Outcome]
    gains: dict[tuple[str, str], dict]  # at the last token, by prompt and BOS
    alone: dict[tuple[str, str], Alone]


def blocks_of(model: Any, depth: int) -> list[torch.nn.Module]:
    (blocks,) = (
        m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == depth
    )
    return list(blocks)


def alone(model: Any, tokens: tuple[int, ...]) -> Alone:
    entered, left = [], []

    def keep(_, args, output):
        entered.append(args[0][0])
        left.append((output if isinstance(output, Tensor) else output[0])[0])

    handles = [
        block.register_forward_hook(keep)
        for block in blocks_of(model, model.config.num_hidden_layers)
    ]
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([tokens]), output_hidden_states=True)
    for handle in handles:
        handle.remove()
    hidden = tuple(h[0] for h in out.hidden_states)
    return Alone(torch.stack(entered), torch.stack(left), hidden, out.logits[0, -1])


@pytest.fixture(scope="module", params=KINDS)
def measured(request, tmp_path_factory) -> Measured:
    directory = save(random_model(request.param), tmp_path_factory.mktemp(request.param))
    loaded, theirs = in_memory(directory), stock(directory)
    observed = outcomes(loaded)
    gains = {
        (row["prompt"], row["bos"]): row
        for row in rows(observed, loaded.body, loaded.tokenizer)[0]
        if row["positions"] == "last"
    }
    one_by_one = {
        (s.prompt.name, s.bos): alone(theirs, s.tokens) for o in observed for s in o.batch.sequences
    }
    return Measured(directory, loaded, theirs, observed, gains, one_by_one)


def at_last(measured: Measured):
    """For each prompt: the row of its last token, and the prompt alone."""
    assert measured.gains.keys() == measured.alone.keys()
    assert len(measured.gains) == 50
    return [(measured.gains[key], measured.alone[key]) for key in measured.gains]


def last(x: Tensor) -> float:
    return float(norm(x[-1]))


def test_a_prompt_in_a_batch_has_the_norms_and_logits_that_it_has_alone(measured):
    assert any((o.batch.mask == 0).any() for o in measured.outcomes)
    for outcome in measured.outcomes:
        for i, sequence in enumerate(outcome.batch.sequences):
            by_itself = measured.alone[sequence.prompt.name, sequence.bos]
            sites = [by_itself.entered[0], *by_itself.left]
            if measured.loaded.body.final_norm is not None:
                sites.append(by_itself.hidden[-1])
            expected = torch.stack([norm(x) for x in sites])
            ours = outcome.norms[:, i, : len(sequence.tokens)].double()
            torch.testing.assert_close(ours, expected, rtol=CLOSE, atol=0)
            apart = (outcome.logits[i] - by_itself.logits).norm()
            assert apart <= CLOSE * by_itself.logits.norm()


def test_the_gain_of_hidden_states_is_that_of_the_penultimate_block_not_of_the_last(measured):
    for row, prompt in at_last(measured):
        ours = row["gain_hidden_states"]
        theirs = last(prompt.hidden[-2]) / last(prompt.hidden[-3])
        penultimate = last(prompt.left[-2]) / last(prompt.entered[-2])
        assert ours == pytest.approx(theirs, rel=CLOSE)
        assert ours == pytest.approx(penultimate, rel=CLOSE)
        assert abs(math.log(ours / (last(prompt.left[-1]) / last(prompt.entered[-1])))) > 1e-4


def test_gains_are_ratios_of_what_enters_and_leaves_blocks(measured):
    for row, prompt in at_last(measured):
        leaves = last(prompt.left[-1])
        assert row["last_gain"] == pytest.approx(leaves / last(prompt.entered[-1]), rel=CLOSE)
        assert row["total_amp"] == pytest.approx(leaves / last(prompt.left[0]), rel=CLOSE)
        assert row["total_amp_embedding"] == pytest.approx(
            leaves / last(prompt.entered[0]), rel=CLOSE
        )


def test_the_gain_with_the_final_norm_is_the_last_hidden_state_over_the_one_before(measured):
    for row, prompt in at_last(measured):
        ours = row["gain_with_final_norm"]
        if measured.loaded.body.final_norm is None:
            assert math.isnan(ours)
        else:
            expected = last(prompt.hidden[-1]) / last(prompt.hidden[-2])
            assert ours == pytest.approx(expected, rel=CLOSE)
            # the last block is between the two: its gain is in it
            of_norm = last(prompt.hidden[-1]) / last(prompt.left[-1])
            assert ours == pytest.approx(of_norm * row["last_gain"], rel=CLOSE)


def test_there_are_rows_for_the_first_the_later_and_the_last_positions(measured):
    gains, norms = rows(measured.outcomes, measured.loaded.body, measured.loaded.tokenizer)
    sites = len(measured.outcomes[0].norms)
    assert len(gains) == 3 * len(measured.alone)
    assert len(norms) == sites * len(gains)
    table = {(r["prompt"], r["bos"], r["positions"], r["depth"]): r for r in norms}
    for (prompt, bos), by_itself in measured.alone.items():
        for depth, left in enumerate(by_itself.left, 1):
            n = norm(left)
            expected = {"first": n[0], "later": n[1:].log().mean().exp(), "last": n[-1]}
            for positions, value in expected.items():
                row = table[prompt, bos, positions, depth]
                assert row["site"] == f"block_{depth - 1}"
                assert row["norm"] == pytest.approx(float(value), rel=CLOSE)
                before = table[prompt, bos, positions, depth - 1]["norm"]
                assert row["log_gain"] == pytest.approx(math.log(row["norm"] / before), abs=CLOSE)
            assert math.isnan(table[prompt, bos, "last", 0]["log_gain"])


def test_hooks_are_gone_after_the_pass(measured):
    modules = list(measured.loaded.model.modules())
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules) == 0
    assert len(all_batches(measured.loaded)) < len(measured.alone) / 5


def test_a_model_of_one_block_has_no_penultimate_one():
    assert math.isnan(gain_metrics([0.0, 1.0, 0.5], 1)["gain_hidden_states"])
    metrics = gain_metrics([math.log(x) for x in (2, 3, 12, 6, 1)], 3)
    assert metrics == pytest.approx(
        {
            "last_gain": 6 / 12,
            "gain_hidden_states": 12 / 3,
            "gain_with_final_norm": 1 / 12,
            "total_amp": 6 / 3,
            "total_amp_embedding": 6 / 2,
        }
    )
    assert metrics.keys() == METRICS.keys()
