"""GGUF files in wheels are converted to the model that they were written from."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from pretrained_models import LAYERS, load, outcomes, random_model, save, trained
from wheels import wheel_source

from normscope.errors import Explained
from normscope.hub.source import locate
from normscope.io.corpus import WheelSource


def write(model: Any, path: Path, kind: str = "qwen2") -> None:
    """Write a model in fp32, with the names and the order of the llama.cpp converter."""
    config, tokens = model.config, json.loads(trained())["model"]
    writer = gguf.GGUFWriter(path, kind)
    writer.add_block_count(LAYERS)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(sorted(tokens["vocab"], key=tokens["vocab"].__getitem__))
    writer.add_token_types([3] * 3 + [1] * (len(tokens["vocab"]) - 3))
    writer.add_token_merges([" ".join(pair) for pair in tokens["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    for name, tensor in model.state_dict().items():
        renamed = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert renamed is not None
        writer.add_tensor(renamed, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> Callable[[bytes], WheelSource]:
    """A wheel with one file."""
    return partial(wheel_source, tmp_path, monkeypatch, "tiny", "model.gguf")


def test_a_gguf_file_gives_the_numbers_of_the_model_that_it_was_written_from(wheel, tmp_path):
    model = random_model("qwen2", tie_word_embeddings=False)
    write(model, tmp_path / "model.gguf")
    source = wheel((tmp_path / "model.gguf").read_bytes())
    located = locate(source, tmp_path / "converted")
    ours, expected = load(located), load(save(model, tmp_path / "saved"))
    for one, other in zip(outcomes(ours), outcomes(expected), strict=True):
        mask = one.batch.mask.bool()
        torch.testing.assert_close(one.norms[:, mask], other.norms[:, mask], rtol=1e-6, atol=0)
        torch.testing.assert_close(one.logits, other.logits, rtol=1e-5, atol=1e-5)
    before = {p: p.stat().st_mtime_ns for p in located.iterdir()}
    gone = WheelSource.model_validate(source.model_dump() | {"requirement": "gone==1.0"})
    assert locate(gone, tmp_path / "converted") == located  # it is not downloaded again
    assert {p: p.stat().st_mtime_ns for p in located.iterdir()} == before


@pytest.mark.parametrize("kind", ["qwen2", "nonesuch"])
def test_a_wheel_that_gives_no_model_is_an_error_that_names_it(wheel, tmp_path, kind):
    """A GGUF file of an unknown kind, a truncated one, and a wheel that is not available."""
    write(random_model("qwen2"), tmp_path / "model.gguf", kind)
    content = (tmp_path / "model.gguf").read_bytes()
    for size in (2000,) if kind == "qwen2" else (None,):
        source = wheel(content[:size])
        for requirement in ("tiny==1.0", "gone==1.0"):
            asked = source.model_copy(update={"requirement": requirement})
            with pytest.raises(Explained, match=rf"{requirement}.*gives no model"):
                locate(asked, tmp_path / "converted")
    assert not list((tmp_path / "converted").iterdir())
