"""Measurements of pretrained models, also with offloaded weights."""

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from pretrained_models import (
    KINDS,
    VOCABULARY,
    Job,
    from_directory,
    half_of_memory,
    load,
    norm,
    outcomes,
    random_model,
    save,
    stock,
    tokenizer,
)
from torch import Tensor

from normscope.errors import Explained
from normscope.hub.loading import LoadedModel
from normscope.hub.measurement import Outcome, gain_metrics, prediction, rows
from normscope.studies.pretrained.measures import METRICS

CLOSE = 1e-5  # relative; for logits, relative to their norm
TOKENIZER = tokenizer()


@dataclass(frozen=True)
class Alone:
    """One prompt through the stock model, without a batch, padding or a mask.

    ``entered`` and ``left`` are the inputs and outputs of the blocks (blocks, positions, width).
    """

    entered: Tensor
    left: Tensor
    hidden: tuple[Tensor, ...]
    logits: Tensor


@dataclass(frozen=True)
class Measured:
    """Outcomes of all prompts in batches, and each prompt alone, by prompt and BOS."""

    loaded: LoadedModel
    outcomes: list[Outcome]
    gains: list[dict]
    norms: list[dict]
    inside: list[dict]
    alone: dict[tuple[str, str], Alone]


def alone(model: Any, tokens: tuple[int, ...]) -> Alone:
    entered, left = [], []

    def keep(_, args, output):
        entered.append(args[0][0])
        left.append((output if isinstance(output, Tensor) else output[0])[0])

    depth = model.config.num_hidden_layers
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == depth]
    handles = [block.register_forward_hook(keep) for block in lists[0]]
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([tokens]), output_hidden_states=True)
    for handle in handles:
        handle.remove()
    hidden = tuple(h[0] for h in out.hidden_states)
    return Alone(torch.stack(entered), torch.stack(left), hidden, out.logits[0, -1])


@pytest.fixture(scope="module", params=KINDS)
def measured(request, tmp_path_factory) -> Measured:
    directory = save(random_model(request.param), tmp_path_factory.mktemp(request.param))
    loaded, reference = load(directory), stock(directory)
    observed = outcomes(loaded)
    one_by_one = {
        (s.prompt.name, s.bos): alone(reference, s.tokens)
        for o in observed
        for s in o.batch.sequences
    }
    assert len(one_by_one) == 50
    return Measured(loaded, observed, *rows(observed, loaded.body, loaded.tokenizer), one_by_one)


def last(x: Tensor) -> float:
    return float(norm(x[-1]))


def test_a_prompt_in_a_batch_has_the_norms_and_logits_that_it_has_alone(measured):
    assert any((o.batch.mask == 0).any() for o in measured.outcomes)
    assert len(measured.outcomes) < len(measured.alone) / 5
    for outcome in measured.outcomes:
        for i, sequence in enumerate(outcome.batch.sequences):
            prompt = measured.alone[sequence.prompt.name, sequence.bos]
            sites = [prompt.entered[0], *prompt.left]
            if measured.loaded.body.final_norm is not None:
                sites.append(prompt.hidden[-1])
            expected = torch.stack([norm(x) for x in sites])
            ours = outcome.norms[:, i, : len(sequence.tokens)].double()
            torch.testing.assert_close(ours, expected, rtol=CLOSE, atol=0)
            difference = (outcome.logits[i] - prompt.logits).norm()
            assert difference <= CLOSE * prompt.logits.norm()


def test_gains_are_ratios_of_the_norms_of_hooks_and_hidden_states(measured):
    rows_at_last = [row for row in measured.gains if row["positions"] == "last"]
    assert len(measured.gains) == 3 * len(rows_at_last) == 3 * len(measured.alone)
    for row in rows_at_last:
        prompt = measured.alone[row["prompt"], row["bos"]]
        leaves, hidden = last(prompt.left[-1]), [last(h) for h in prompt.hidden]
        expected = {
            "last_gain": leaves / last(prompt.entered[-1]),
            "total_amp": leaves / last(prompt.left[0]),
            "total_amp_embedding": leaves / last(prompt.entered[0]),
            "gain_hidden_states": hidden[-2] / hidden[-3],
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=CLOSE)
        penultimate = last(prompt.left[-2]) / last(prompt.entered[-2])
        assert row["gain_hidden_states"] == pytest.approx(penultimate, rel=CLOSE)
        assert abs(math.log(row["gain_hidden_states"] / expected["last_gain"])) > 2 * CLOSE
        if measured.loaded.body.final_norm is None:
            assert math.isnan(row["gain_with_final_norm"])
        else:
            assert row["gain_with_final_norm"] == pytest.approx(hidden[-1] / hidden[-2], rel=CLOSE)


def test_there_are_rows_for_the_first_the_later_and_the_last_positions(measured):
    assert len(measured.norms) == len(measured.outcomes[0].norms) * len(measured.gains)
    table = {(r["prompt"], r["bos"], r["positions"], r["depth"]): r for r in measured.norms}
    for (prompt, bos), single in measured.alone.items():
        for depth, left in enumerate(single.left, 1):
            n = norm(left)
            expected = {"first": n[0], "later": n[1:].log().mean().exp(), "last": n[-1]}
            for positions, value in expected.items():
                row = table[prompt, bos, positions, depth]
                assert row["site"] == f"block_{depth - 1}"
                assert row["norm"] == pytest.approx(float(value), rel=CLOSE)
                before = table[prompt, bos, positions, depth - 1]["norm"]
                assert row["log_gain"] == pytest.approx(math.log(row["norm"] / before), abs=CLOSE)
            assert math.isnan(table[prompt, bos, "last", 0]["log_gain"])


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


@given(st.lists(st.floats(-60, 60), min_size=2, max_size=VOCABULARY))
@example([3.5] * 7)
@example([0.0, -math.inf, 0.0])  # an impossible token
@example([0.0] * 5 + [1e4] + [0.0] * 5)  # a certain one
def test_a_prediction_has_the_entropies_of_scipy_and_the_most_probable_token(logits):
    ours = prediction(torch.tensor(logits, dtype=torch.float64), TOKENIZER)
    p = scipy.special.softmax(logits)
    assert ours["entropy"] == pytest.approx(scipy.stats.entropy(p), rel=1e-9, abs=1e-12)
    published = scipy.stats.entropy(np.clip(p, 1e-10, None))  # which makes the sum one
    assert ours["entropy_as_published"] == pytest.approx(published, rel=1e-9, abs=1e-12)
    assert ours["top_prob"] == pytest.approx(p.max(), rel=1e-12)
    with np.errstate(invalid="ignore"):
        assert ours["logit_sd"] == pytest.approx(np.std(logits), rel=1e-9, abs=1e-12, nan_ok=True)
    most_probable = np.flatnonzero(p == p.max())
    assert ours["top_token"] in [TOKENIZER.decode([int(i)]) for i in most_probable]


MB = 10**6
MEMORY_MB = 150
# in fp32, a block has 64 MB, the embedding and the head have 138 MB each, and all have 0.6 GB
SIZES = {
    "vocab_size": 30_000,
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 6,
    "head_dim": 288,
    "num_key_value_heads": 4,
}
# runs a script and prints the anonymous memory of the process before it, and the highest during it;
# pages of memory-mapped files are left out, because the system reclaims them when it needs memory
DRIVER = """
import runpy, sys, threading, time
def anonymous():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))
import normscope.hub.loading, normscope.hub.source, pandas, pydantic_settings
import transformers.models.llama.modeling_llama
before = peak = anonymous()
def watch():
    global peak
    while True:
        peak = max(peak, anonymous())
        time.sleep(0.001)
threading.Thread(target=watch, daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(before, peak)
"""


def check_same_numbers(directory: Path, stored: str) -> None:
    resident, offloaded = load(directory), load(directory, half_of_memory(directory))
    assert any(p.is_meta for p in offloaded.model.parameters())
    assert not resident.facts["streamed"]
    assert offloaded.facts == resident.facts | {"streamed": True}
    assert offloaded.facts["stored"] == stored
    for ours, expected in zip(outcomes(offloaded), outcomes(resident), strict=True):
        mask = ours.batch.mask.bool()
        assert ours.norms.dtype == ours.logits.dtype == torch.float32
        assert torch.equal(ours.norms[:, mask], expected.norms[:, mask])
        assert torch.equal(ours.logits, expected.logits)


@pytest.mark.parametrize("kind", ["gpt2", "llama_tied", "opt_post", "mixtral", "nanochat"])
def test_an_offloaded_model_gives_the_numbers_of_the_model_in_memory(kind, tmp_path):
    """Also with converted experts, and with a norm that is used twice."""
    check_same_numbers(save(random_model(kind), tmp_path), "F32")


def test_weights_stored_in_16_bits_are_computed_in_fp32(tmp_path):
    check_same_numbers(save(random_model("llama").to(torch.bfloat16), tmp_path), "BF16")


def test_an_architecture_that_cannot_be_offloaded_is_an_error_with_the_way_out(tmp_path):
    directory = save(random_model("roberta"), tmp_path)
    names = {"blocks": "roberta.encoder.layer", "final_norm": "none"}
    with pytest.raises(Explained, match=r"roberta model .*raise memory_gb"):
        load(directory, 2 * half_of_memory(directory) - 1e-9, **names)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads RssAnon of Linux")
def test_peak_memory_is_the_limit_and_little_more(tmp_path):
    model = random_model("llama", **SIZES).to(torch.bfloat16)
    assert 4 * MEMORY_MB < 4 * sum(p.numel() for p in model.parameters()) / MB < 4.5 * MEMORY_MB
    recipe = from_directory(save(model, tmp_path / "model", "100MB"), prompts="a").model_dump()
    job = Job(tmp_path, recipe, tmp_path / "revisions", memory_mb=MEMORY_MB)
    prompts = tmp_path / "prompts.yaml"
    prompts.write_text("sets: {a: {B: {prompts: [Time heals, Water]}}}")
    command = [sys.executable, "-c", DRIVER, *job.command("--prompts", str(prompts))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    facts = json.loads((job.out / "model.json").read_text())
    assert facts["missing"] is None
    assert facts["streamed"]
    before, peak = map(int, done.stdout.split())
    # beyond the weights: activations, logits, and buffers of OpenMP and BLAS
    assert peak - before < (MEMORY_MB + 200) * MB
