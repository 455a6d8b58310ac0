"""Models whose weights exceed the memory limit: the same numbers, within the limit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pretrained_hub import Job
from pretrained_models import (
    from_directory,
    half_of_memory,
    load,
    outcomes,
    random_model,
    save,
)

from normscope.errors import Explained

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
    recipe = from_directory(save(model, tmp_path / "model", "100MB")).model_dump()
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
