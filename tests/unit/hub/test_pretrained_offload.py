"""Models whose weights exceed the memory limit: the same numbers, within the limit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from causal_architectures import model_of
from pretrained_hub import Job
from pretrained_models import (
    KINDS,
    from_directory,
    half_of_memory,
    load,
    outcomes,
    random_model,
    save,
    tokenizer,
)
from torch import nn
from transformers import AutoModelForCausalLM

from normscope.hub.loading import TooLittleMemory

MB = 10**6
MEMORY_MB = 150
# in fp32, a block has 64 MB, and the embedding and the head have 138 MB each
SIZES: dict[str, Any] = {
    "vocab_size": 30_000,
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 6,
}
TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
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
    assert "disk" in offloaded.model.hf_device_map.values()
    assert not resident.facts["streamed"]
    assert offloaded.facts == resident.facts | {"streamed": True}
    assert offloaded.facts["stored"] == stored
    for ours, expected in zip(outcomes(offloaded), outcomes(resident), strict=True):
        mask = ours.batch.mask.bool()
        assert ours.norms.dtype == ours.logits.dtype == torch.float32
        assert torch.equal(ours.norms[:, mask], expected.norms[:, mask])
        assert torch.equal(ours.logits, expected.logits)


@pytest.mark.parametrize("kind", KINDS)
def test_an_offloaded_model_gives_the_numbers_of_the_model_in_memory(kind, tmp_path):
    check_same_numbers(save(random_model(kind), tmp_path), "F32")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_weights_stored_in_16_bits_are_computed_in_fp32(dtype, tmp_path):
    check_same_numbers(save(random_model("llama").to(dtype), tmp_path), TYPES[dtype])


@pytest.mark.parametrize("kind", ["mixtral", "nanochat"])
def test_converted_experts_and_a_norm_used_twice_can_be_offloaded(kind, tmp_path):
    check_same_numbers(save(model_of(kind), tmp_path), "F32")


def test_an_architecture_that_cannot_be_offloaded_is_an_error_with_the_way_out(tmp_path):
    directory = save(model_of("roberta"), tmp_path)
    names = {"blocks": "roberta.encoder.layer", "final_norm": "none"}
    with pytest.raises(TooLittleMemory, match=r"roberta model .*raise memory_gb"):
        load(directory, 2 * half_of_memory(directory) - 1e-9, **names)


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """Random weights in bf16, which take 0.6 GB in fp32."""
    directory = tmp_path_factory.mktemp("large")
    config = transformers.LlamaConfig(
        **SIZES,
        num_attention_heads=8,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.to_empty(device="cpu")
    row = torch.randn(SIZES["intermediate_size"], generator=torch.Generator().manual_seed(0))
    for i, p in enumerate(model.parameters()):
        row = row.roll(i)
        nn.init.ones_(p) if p.ndim == 1 else p.data.copy_(row[: p.shape[1]] / p.shape[1] ** 0.5)
    assert 4 * MEMORY_MB < 4 * sum(p.numel() for p in model.parameters()) / MB < 4.5 * MEMORY_MB
    model.save_pretrained(directory, max_shard_size="100MB")
    tokenizer().save_pretrained(directory)
    return directory


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads RssAnon of Linux")
def test_peak_memory_is_the_limit_and_little_more(large, tmp_path):
    recipe = from_directory(large).model_dump()
    job = Job(tmp_path, recipe, tmp_path / "revisions", memory_mb=MEMORY_MB)
    (tmp_path / "prompts.yaml").write_text("sets: {a: {B: {prompts: [Time heals, Water]}}}")
    command = [sys.executable, "-c", DRIVER, *job.command("--prompts", tmp_path / "prompts.yaml")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    facts = json.loads((job.out / "model.json").read_text())
    assert facts["missing"] is None
    assert facts["streamed"]
    before, peak = map(int, done.stdout.split())
    # beyond the weights: activations, logits, and buffers of OpenMP and BLAS
    assert peak - before < (MEMORY_MB + 200) * MB
