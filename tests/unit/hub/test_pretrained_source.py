"""Models on disk: pickles are converted and never run; errors name the damaged file."""

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import (
    half_of_memory,
    load,
    outcomes,
    random_model,
    rewrite,
    save,
)
from properties import examples
from safetensors.torch import load_file

from normscope.errors import Explained
from normscope.hub.loading import LoadedModel
from normscope.hub.recipe import DirectorySource
from normscope.hub.source import locate

SHARD = "model-00002-of-*.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def intact(tmp_path_factory) -> Path:
    return save(random_model("gpt2"), tmp_path_factory.mktemp("intact"))


@pytest.fixture
def model(intact, tmp_path) -> Path:
    """A copy to damage."""
    return shutil.copytree(intact, tmp_path / "model")


def convert(directory: Path, memory_gb: float = 1.0) -> LoadedModel:
    source = DirectorySource(kind="directory", path=str(directory))
    return load(locate(source, directory.parent / "converted").directory, memory_gb)


def refused(directory: Path, *parts: str, memory_gb: float = 1.0) -> str:
    with pytest.raises(Explained) as e:
        convert(directory, memory_gb)
    message = str(e.value)
    for part in parts:
        assert part in message
    return message


def tensors(directory: Path) -> dict[str, torch.Tensor]:
    weights = {}
    for path in sorted(directory.glob("model-*.safetensors")):
        weights |= load_file(path)
    return weights


def pickled(directory: Path, shards: int = 1, save: Callable = torch.save) -> list[Path]:
    """The same weights as pytorch_model*.bin, and no safetensors."""
    names = sorted(weights := tensors(directory))
    for path in (*directory.glob("model-*.safetensors"), directory / INDEX):
        path.unlink()
    if shards == 1:
        save(weights, directory / "pytorch_model.bin")
        return [directory / "pytorch_model.bin"]
    paths, weight_map = [], {}
    for i in range(shards):
        paths.append(directory / f"pytorch_model-{i + 1:05}-of-{shards:05}.bin")
        part = {name: weights[name] for name in names[i::shards]}
        save(part, paths[-1])
        weight_map |= dict.fromkeys(part, paths[-1].name)
    index = {"metadata": {}, "weight_map": weight_map}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return paths


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_directory_of_safetensors_is_not_converted(model, tmp_path):
    source = DirectorySource(kind="directory", path=str(model))
    located = locate(source, tmp_path / "converted")
    assert (located.directory, located.commit) == (model, None)
    assert not (tmp_path / "converted").exists()


def legacy(content: Any, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("saved", [torch.save, legacy])
def test_pickled_weights_are_converted_once_and_give_the_same_numbers(intact, model, shards, saved):
    pickled(model, shards, saved)
    for a, b in zip(outcomes(convert(model)), outcomes(load(intact)), strict=True):
        assert torch.equal(a.logits, b.logits)
    (made,) = (model.parent / "converted").iterdir()
    before = {path: path.stat().st_mtime_ns for path in made.iterdir()}
    convert(model)
    assert {path: path.stat().st_mtime_ns for path in made.iterdir()} == before
    assert list((model.parent / "converted").iterdir()) == [made]
    assert len(list(made.glob("*.safetensors"))) == shards


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def plain(content: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize("saved", [torch.save, legacy, plain])
def test_a_pickle_that_holds_more_than_tensors_is_refused_and_not_run(model, tmp_path, saved):
    (path,) = pickled(model)
    harm = tmp_path / "harm"
    saved({"a": torch.ones(2), "x": Harmful(harm)}, path)
    message = refused(model, str(path), "holds more than tensors", "give weights in safetensors")
    assert "weights_only" not in message  # torch's message advises to unpickle the file
    assert "\n" not in message
    assert not harm.exists()
    assert not any((tmp_path / "converted").glob("*"))
    if saved is plain:  # without the protection, it does harm
        pickle.loads(path.read_bytes())
    else:
        torch.load(path, weights_only=False)
    assert harm.is_dir()


@pytest.mark.parametrize("size", [0, 10, 2000])
def test_a_truncated_pickle_is_an_error_that_names_it(model, size):
    (path,) = pickled(model)
    path.write_bytes(path.read_bytes()[:size])
    refused(model, str(path), "damaged")


@given(raw=st.one_of(st.binary(max_size=60), st.sampled_from([b"G", b"abc", b"\x80\x02]."])))
@examples(50)
def test_bytes_other_than_a_pickle_are_an_error_that_names_the_file(tmp_path_factory, raw):
    directory = tmp_path_factory.mktemp("damaged")
    (directory / "config.json").write_text("{}")
    path = directory / "pytorch_model.bin"
    path.write_bytes(raw)
    with pytest.raises(Explained, match=r"pytorch_model\.bin") as e:
        locate(DirectorySource(kind="directory", path=str(directory)), directory / "converted")
    assert "weights_only" not in str(e.value)


def test_a_pickled_shard_that_is_missing_is_an_error(model):
    missing = pickled(model, 3)[1]
    missing.unlink()
    refused(model, str(missing), "fetch it again")


@pytest.mark.parametrize("size", [0, 7, 100, -1])
def test_a_truncated_shard_is_an_error_that_names_it(model, size):
    (path,) = model.glob(SHARD)
    path.write_bytes(path.read_bytes()[:size])
    refused(model, str(path), "fetch it again")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": []}'])
def test_a_damaged_index_is_an_error_that_names_it(model, text):
    (model / INDEX).write_text(text)
    refused(model, str(model / INDEX), "fetch it again")


def test_a_directory_without_configuration_is_an_error(model):
    (model / "config.json").unlink()
    refused(model, str(model), "no config.json", "give what save_pretrained wrote")


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma", "qwen2"])
def test_a_directory_without_tokenizer_is_an_error(tmp_path, kind):
    directory = save(random_model(kind), tmp_path / "model")
    for path in directory.glob("tokenizer*"):
        path.unlink()
    refused(directory, str(directory), "has no tokenizer")


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "nonesuch"},
        {"n_head": 5},
        {"n_layer": "many"},
        {"activation_function": "nonesuch"},
        {"model_type": "vit"},
    ],
    ids=str,
)
def test_a_configuration_that_makes_no_model_is_an_error_that_names_it(model, changes):
    edit(model / "config.json", **changes)
    refused(model, str(model))


@pytest.mark.parametrize("kind", ["gpt2_like", "gpt2"])
def test_code_that_comes_with_a_model_is_not_run(model, tmp_path, kind):
    harm = tmp_path / "harm"
    (model / "custom.py").write_text(f"import os\nos.mkdir({str(harm)!r})\nConfig = Model = None\n")
    custom = {"AutoConfig": "custom.Config", "AutoModelForCausalLM": "custom.Model"}
    edit(model / "config.json", auto_map=custom, model_type=kind)
    if kind == "gpt2":  # transformers uses its built-in class
        assert convert(model).facts["class"] == "GPT2LMHeadModel"
    else:
        message = refused(model, str(model), "without running code that comes with it")
        assert re.search("custom code|trust_remote_code", message)
    assert not harm.exists()


@pytest.mark.parametrize("change", [lambda _: torch.zeros(17), lambda _: None])
def test_a_missing_weight_or_one_of_another_shape_is_an_error_that_names_it(model, change):
    _, name = rewrite(model, "h.2.mlp.c_fc.bias", change)
    refused(model, str(model), name)


@pytest.mark.parametrize("ending", ["h.2.mlp.c_fc.bias", "ln_f.bias"])
def test_an_offloaded_weight_that_is_missing_is_an_error_that_names_it(model, ending):
    memory_gb = half_of_memory(model)
    _, name = rewrite(model, ending, lambda _: None)
    refused(model, str(model), name, memory_gb=memory_gb)


@pytest.mark.parametrize("size", [1, 17])
def test_an_offloaded_weight_of_another_shape_stops_the_forward_pass(model, size):
    memory_gb = half_of_memory(model)
    rewrite(model, "h.2.mlp.c_fc.bias", lambda _: torch.zeros(size))
    loaded = load(model, memory_gb)
    assert loaded.model.get_parameter("transformer.h.2.mlp.c_fc.bias").is_meta
    with pytest.raises(ValueError, match=rf"shape torch.Size\(\[{size}\]\)"):
        outcomes(loaded)
