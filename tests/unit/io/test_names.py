"""Names in a configuration: tables give them back unchanged, and files can carry them."""

import copy
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from pydantic import TypeAdapter, ValidationError
from recipes import examples

from normscope.config import ConfigError, load
from normscope.hub.prompts import PromptsError
from normscope.io.names import Key, survives_tables
from normscope.pilot import read_project
from normscope.studies.pretrained.grid import check_prompts

RAW = read_project(ROOT)
MODEL = {"source": {"kind": "directory", "path": "m"}, "family": "F"}
texts = st.one_of(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    st.sampled_from(
        "nan NaN null NULL none None NA true inf Infinity 1 1e5 -1 0x1 1_0 #N/A".split()
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
)


def accepts(validate: Any, name: str) -> bool:
    try:
        validate(name)
    except (ValueError, ValidationError):
        return False
    return True


@examples(200)
@given(texts)
def test_a_name_that_is_accepted_comes_back_from_a_table(name: str):
    table = pd.DataFrame({"name": [name], "value": [0.5]})
    read_back = pd.read_csv(io.StringIO(table.to_csv(index=False)))["name"].tolist()
    assert read_back == [name] or not accepts(survives_tables, name)
    if accepts(TypeAdapter(Key).validate_python, name):
        assert read_back == [name]
        assert name.isascii()
        assert name.isidentifier()
        assert name == name.lower()


@pytest.mark.parametrize("name", ["my-task", "1", "nan", "a" * 61, ""])
def test_a_name_that_files_and_tables_cannot_carry_is_refused(name: str):
    raw = copy.deepcopy(RAW)
    raw["main"]["protocols"][name] = raw["main"]["protocols"]["small"]
    with pytest.raises(ConfigError) as error:
        load(raw)
    assert f"protocols.{name}" in str(error.value)


@pytest.mark.parametrize("name", ["1e5", "nan", "null"])
def test_models_and_prompts_that_tables_would_misread_are_refused(name: str, tmp_path: Path):
    raw = copy.deepcopy(RAW)
    raw["pretrained"]["models"] = [MODEL | {"name": name}]
    with pytest.raises(ConfigError, match=r"(?s)pretrained\.models\.0\.name.*choose another name"):
        load(raw)
    path = tmp_path / "prompts.yaml"
    prompts = yaml.safe_load((ROOT / "data" / "prompts.yaml").read_text())["sets"]
    new = {"prompts": ["to be or not"]}
    for part, sets in ((name, {name: {"Q": new}}), ("other", {"other": {name: new}})):
        path.write_text(json.dumps({"sets": prompts | sets}))  # all texts in quotes
        with pytest.raises(PromptsError, match="choose another name") as error:
            check_prompts(path)
        assert str(error.value).startswith(f"{path}: sets.{part}.")
