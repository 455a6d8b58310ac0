"""The section pretrained of the configuration: what is refused, and what decides a measurement."""

from typing import Any

import pytest
from processes import ROOT
from pydantic import ValidationError

from normscope.hub.prompts import PromptsError
from normscope.hub.recipe import Measurement
from normscope.studies.pretrained.grid import Pretrained, PretrainedModel, check_prompts

HUB = {"kind": "hub", "repo": "openai-community/gpt2", "revision": "main"}
PART = {"requirement": "some==1.0", "sha256": "0" * 64, "member": "a/model.gguf"}
WHEEL = {"kind": "wheel"} | PART
MODEL = {"name": "gpt2", "family": "GPT-2", "source": HUB}


def study(*models: dict[str, Any], **changes: Any) -> Pretrained:
    keys = {"models": list(models), "memory_gb": 8, "threads": 2, "resamples": 100} | changes
    return Pretrained.model_validate(keys)


def test_models_are_distinct_and_their_bases_are_among_them():
    chat = MODEL | {"name": "chat", "base": "gpt2"}
    assert list(study(MODEL, chat).by_name()) == ["gpt2", "chat"]
    itself = MODEL | {"base": "gpt2"}
    for models, reason in (
        ([MODEL, MODEL], "given twice: gpt2"),
        ([chat], "chat: its base gpt2 is not"),
        ([itself], "gpt2: its base gpt2 is not"),
    ):
        with pytest.raises(ValidationError, match=reason):
            study(*models)


@pytest.mark.parametrize("name", ["", "GPT2", "../a", "a b", ".hidden", "-flag", "a\n"])
def test_a_name_that_files_cannot_have_is_refused(name):
    with pytest.raises(ValidationError, match="name"):
        PretrainedModel.model_validate(MODEL | {"name": name})


INVALID = [
    *(("repo", HUB | {"repo": repo}) for repo in ("", "a/b/c", "https://hf.co/gpt2", "a b", "a/")),
    ("revision", {"kind": "hub", "repo": "gpt2"}),
    ("repo", {"kind": "directory", "repo": "gpt2"}),
    ("token", HUB | {"token": "secret"}),
    ("sha256", WHEEL | {"sha256": "0"}),
    ("sha256", {"kind": "parts", "parts": [PART]}),
    ("parts", {"kind": "parts", "sha256": "0" * 64, "parts": []}),
]


@pytest.mark.parametrize(("key", "source"), INVALID, ids=str)
def test_an_invalid_source_is_refused(key, source):
    with pytest.raises(ValidationError, match=key):
        Measurement.model_validate({"source": source})


def test_name_family_and_base_decide_nothing():
    model = PretrainedModel.model_validate(MODEL | {"blocks": "transformer.h"})
    other = model.model_copy(update={"name": "b", "family": "B", "base": "gpt2"})
    assert model.decides == other.decides
    assert model.decides.model_dump() == {
        "source": HUB | {"timeout_s": 3600},
        "blocks": "transformer.h",
        "final_norm": None,
        "vocabulary": None,
        "prompts": "benchmark",
        "device": "cpu",
    }


def test_prompts_that_the_file_lacks_are_an_error_that_names_the_model():
    other = study(MODEL, MODEL | {"name": "other", "prompts": "benchmarks"})
    with pytest.raises(PromptsError, match=r"no set benchmarks, .* other .*did you mean benchmark"):
        check_prompts(ROOT / "data" / "prompts.yaml", other)
