"""The section pretrained of the configuration: what is refused, and what decides a measurement."""

import pytest
from pydantic import ValidationError

from normscope.hub.recipe import Measured
from normscope.studies.pretrained.grid import Pretrained, PretrainedModel

HUB = {"kind": "hub", "repo": "openai-community/gpt2", "revision": "main"}
WHEEL = {
    "kind": "wheel",
    "requirement": "some==1.0",
    "sha256": "0" * 64,
    "member": "some/model.gguf",
}
MODEL = {"name": "gpt2", "family": "GPT-2", "source": HUB}


def section(*models: dict, **changes) -> Pretrained:
    keys = {"models": list(models), "memory_gb": 8, "threads": 2, "resamples": 100} | changes
    return Pretrained.model_validate(keys)


def test_models_are_found_by_name():
    grid = section(MODEL, MODEL | {"name": "gpt2-chat", "base": "gpt2"})
    assert list(grid.by_name()) == ["gpt2", "gpt2-chat"]
    assert grid.by_name()["gpt2-chat"].base == "gpt2"
    assert section().by_name() == {}


def test_a_name_given_twice_is_an_error():
    with pytest.raises(ValidationError, match="given twice: gpt2"):
        section(MODEL, MODEL | {"family": "another"})


def test_a_base_that_is_not_there_is_an_error_that_names_both():
    with pytest.raises(ValidationError, match="chat: its base gpt2 is not among the models"):
        section(MODEL | {"name": "chat", "base": "gpt2"})


@pytest.mark.parametrize("name", ["", "GPT2", "a/b", "../a", "a b", ".hidden", "-flag", "a\n"])
def test_a_name_that_is_no_file_name_is_an_error(name):
    with pytest.raises(ValidationError, match="name"):
        PretrainedModel.model_validate(MODEL | {"name": name})


@pytest.mark.parametrize("repo", ["", "a/b/c", "https://huggingface.co/gpt2", "a b", "/gpt2", "a/"])
def test_a_repository_that_is_no_address_is_an_error(repo):
    with pytest.raises(ValidationError, match="repo"):
        Measured.model_validate({"source": HUB | {"repo": repo}})


@pytest.mark.parametrize("key", ["blocks", "final_norm"])
@pytest.mark.parametrize(
    ("value", "fine"),
    [
        ("model.layers", True),
        ("h", True),
        ("model._layers_2", True),
        ("", False),
        ("model.", False),
        (".layers", False),
        ("model.0", True),
        ("model layers", False),
        ("model.layers[0]", False),
    ],
)
def test_blocks_and_the_final_norm_are_dotted_names(key, value, fine):
    keys = {"source": HUB, key: value}
    if fine:
        assert getattr(Measured.model_validate(keys), key) == value
    else:
        with pytest.raises(ValidationError, match=key):
            Measured.model_validate(keys)


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "hub", "repo": "gpt2"},
        {"kind": "hub", "repo": "gpt2", "revision": ""},
        {"kind": "directory", "path": ""},
        {"kind": "directory", "repo": "gpt2"},
        {"kind": "ftp", "path": "x"},
        HUB | {"token": "secret"},
        WHEEL | {"sha256": "0"},
    ],
    ids=str,
)
def test_a_source_that_is_none_is_an_error(source):
    with pytest.raises(ValidationError, match="source"):
        Measured.model_validate({"source": source})


@pytest.mark.parametrize(
    ("key", "value"),
    [("memory_gb", 0), ("memory_gb", float("inf")), ("threads", 0), ("resamples", 0), ("more", 1)],
)
def test_numbers_out_of_range_and_unknown_keys_are_errors(key, value):
    with pytest.raises(ValidationError, match=key):
        section(MODEL, **{key: value})


def test_name_family_and_base_decide_nothing():
    model = PretrainedModel.model_validate(MODEL | {"blocks": "transformer.h"})
    other = model.model_copy(update={"name": "b", "family": "B", "base": "gpt2"})
    assert model.decides == other.decides
    assert model.decides.model_dump() == {
        "source": HUB | {"timeout_s": 3600},
        "blocks": "transformer.h",
        "final_norm": None,
        "device": "cpu",
    }
    assert Measured.model_validate_json(model.decides.model_dump_json()) == model.decides
