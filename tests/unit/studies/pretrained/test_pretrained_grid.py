"""The section pretrained of the configuration: what is refused, and what decides a measurement."""

from typing import Any

import pytest
from pydantic import ValidationError

from normscope.hub.recipe import Measured
from normscope.studies.pretrained.grid import Pretrained, PretrainedModel
from normscope.studies.study import Settings

HUB = {"kind": "hub", "repo": "openai-community/gpt2", "revision": "main"}
WHEEL = {"kind": "wheel", "requirement": "some==1.0", "sha256": "0" * 64, "member": "a/model.gguf"}
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
]


@pytest.mark.parametrize(("key", "source"), INVALID, ids=str)
def test_an_invalid_source_is_refused(key, source):
    with pytest.raises(ValidationError, match=key):
        Measured.model_validate({"source": source})


@pytest.mark.parametrize("key", ["blocks", "final_norm"])
def test_blocks_and_the_final_norm_are_dotted_names(key):
    for value in ("h", "model.layers", "model._layers_2", "model.0"):
        assert getattr(Measured.model_validate({"source": HUB, key: value}), key) == value
    for value in ("", "model.", ".layers", "model layers", "model.layers[0]"):
        with pytest.raises(ValidationError, match=key):
            Measured.model_validate({"source": HUB, key: value})


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


STEPPED = HUB | {"revision": "step{step}"}
SERIES = MODEL | {"source": STEPPED, "steps": [1000, 0, 1]}
SETTINGS = Settings(level=0.95, baseline=[])


def test_a_series_is_one_measurement_per_step_by_its_revision():
    models = study(SERIES, MODEL | {"name": "main"})
    revisions = {name: str(recipe.source) for name, recipe in models.probes().items()}
    repo = f"hub {HUB['repo']}"
    of_steps = {f"gpt2-step{step}": f"{repo}@step{step}" for step in (0, 1, 1000)}
    assert revisions == {"main": f"{repo}@main", **of_steps}
    assert [job.name for job in models.jobs()] == list(revisions)
    tables = models.tabulation(SETTINGS)
    assert [model.name for model in tables.models] == ["main"]
    listed = [(c.name, c.model, c.step, c.family) for c in tables.series]
    assert listed == [(f"gpt2-step{s}", "gpt2", s, "GPT-2") for s in (0, 1, 1000)]


def test_a_single_model_has_the_recipes_that_it_had_before_there_were_series():
    """Their text is what names a stored result."""
    models = study(MODEL)
    listed = '{"name":"gpt2","family":"GPT-2","tuned":false,"base":null'
    source = f'"source":{HUB | {"timeout_s": 3600.0}}'.replace("'", '"').replace(" ", "")
    named = f'{source},"blocks":null,"final_norm":null'
    rest = '"memory_gb":8.0,"threads":2,"resamples":100}'
    assert models.model_dump_json() == f'{{"models":[{listed},{named}}}],{rest}'
    tables = f'{{"models":[{listed}}}],"resamples":100,"level":0.95}}'
    assert models.tabulation(SETTINGS).model_dump_json() == tables
    (probe,) = models.probes().values()
    assert probe.model_dump_json() == f'{{{named},"device":"cpu"}}'


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"steps": [1, 2, 1]}, r"models\.0\.steps\n.*given twice: 1"),
        ({"steps": [1, "step2"]}, r"(?s)models\.0\.steps\.1.*valid integer.*'step2'"),
        ({"steps": [-1]}, r"models\.0\.steps\.0"),
        ({"steps": []}, r"models\.0\.steps"),
        ({"steps": None}, r"gpt2: hub .*@step\{step\} has \{step\}: give steps"),
        ({"source": HUB}, r"gpt2: hub .*@main is the same at all steps: write \{step\}"),
        ({"source": HUB | {"revision": "{seed}"}}, r"(?s)models\.0\.source.*revision"),
    ],
    ids=str,
)
def test_an_invalid_series_is_refused(change, reason):
    with pytest.raises(ValidationError, match=reason):
        study(SERIES | change)


def test_a_checkpoint_is_neither_another_model_nor_a_base():
    with pytest.raises(ValidationError, match="given twice: gpt2-step1"):
        study(SERIES, MODEL | {"name": "gpt2-step1"})
    with pytest.raises(ValidationError, match="chat: its base gpt2 is not"):
        study(SERIES, MODEL | {"name": "chat", "base": "gpt2"})
