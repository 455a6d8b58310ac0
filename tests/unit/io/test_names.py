"""Names of what a configuration has: they come back from tables, and files can carry them."""

import copy
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from properties import examples
from pydantic import TypeAdapter, ValidationError

from normscope.config import ConfigError, load
from normscope.hub.prompts import PromptsError
from normscope.io.names import Key, survives_tables
from normscope.studies.pretrained.grid import check_prompts

RAW = yaml.safe_load((ROOT / "config.yaml").read_text())
PROMPTS = yaml.safe_load((ROOT / "data" / "prompts.yaml").read_text())
KEY: TypeAdapter[str] = TypeAdapter(Key)
MODEL = {"source": {"kind": "directory", "path": "m"}, "family": "F"}
texts = st.one_of(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    st.sampled_from(
        "nan NaN null NULL none None NA true inf Infinity 1 1e5 -1 0x1 1_0 #N/A".split()
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
)


def read_back(name: str) -> list[Any]:
    table = pd.DataFrame({"name": [name], "value": [0.5]})
    return pd.read_csv(io.StringIO(table.to_csv(index=False)))["name"].tolist()


@examples(200)
@given(texts)
def test_a_name_that_survives_tables_is_read_back_as_it_was(name: str):
    try:
        survives_tables(name)
    except ValueError:
        return
    assert read_back(name) == [name]


@examples(200)
@given(texts)
def test_a_key_is_letters_digits_and_underscores(name: str):
    try:
        KEY.validate_python(name)
    except ValidationError:
        return
    assert name.isascii()
    assert name.isidentifier()
    assert name == name.lower()
    assert read_back(name) == [name]


@pytest.mark.parametrize("name", ["_x", "my-task", "My", "1", "nan", "true", "a" * 61, "a b", ""])
@pytest.mark.parametrize(
    "place", [("protocols",), ("recall", "tasks"), ("jacobian", "protocols")], ids=".".join
)
def test_a_name_that_files_and_tables_cannot_carry_is_refused(place: tuple[str, ...], name: str):
    raw = copy.deepcopy(RAW)
    part = raw
    for key in place:
        part = part[key]
    part[name] = copy.deepcopy(next(iter(part.values())))
    with pytest.raises(ConfigError) as error:
        load(raw)
    assert ".".join([*place, name]) in str(error.value)


@pytest.mark.parametrize("name", ["1e5", "nan", "0.5", "null", "123"])
def test_a_pretrained_model_that_tables_would_misread_is_refused(name: str):
    raw = copy.deepcopy(RAW)
    raw["pretrained"]["models"] = [MODEL | {"name": name}]
    with pytest.raises(ConfigError, match="choose another name") as error:
        load(raw)
    assert "pretrained.models.0.name" in str(error.value)


@pytest.mark.parametrize("name", ["nan", "1", "", "NA"])
@pytest.mark.parametrize("is_set", [True, False])
def test_prompts_that_tables_would_misread_are_refused(name: str, is_set: bool, tmp_path: Path):
    sets = copy.deepcopy(PROMPTS["sets"])
    new = {"prompts": ["to be or not"]}
    sets |= {name: {"Q": new}} if is_set else {"other": {name: new}}
    path = tmp_path / "prompts.yaml"
    path.write_text(yaml.safe_dump({"sets": sets}))
    with pytest.raises(PromptsError, match="choose another name") as error:
        check_prompts(path)
    assert str(error.value).startswith(f"{path}: sets.{name if is_set else 'other'}.")


def test_the_projects_prompts_are_right_and_need_the_set_of_statistics(tmp_path: Path):
    check_prompts(ROOT / "data" / "prompts.yaml")
    path = tmp_path / "prompts.yaml"
    path.write_text(yaml.safe_dump({"sets": {"other": {"Q": {"prompts": ["a"]}}}}))
    with pytest.raises(PromptsError, match="has no set benchmark"):
        check_prompts(path)
