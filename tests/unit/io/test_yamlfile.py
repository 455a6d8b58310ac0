"""YAML files, and the names in them."""

import copy
import io
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from processes import ROOT
from pydantic import TypeAdapter, ValidationError
from recipes import examples
from ruamel.yaml import YAML

from normscope.config import ConfigError, load
from normscope.errors import Explained
from normscope.hub.prompts import PromptsError
from normscope.io.names import Key, survives_tables
from normscope.io.yamlfile import read_config, read_yaml
from normscope.pilot import read_project
from normscope.studies.pretrained.grid import check_prompts

# PyYAML does not escape these line ends when it writes
CHARACTERS = st.characters(exclude_characters="\x85\u2028\u2029", codec="utf-8")
KEYS = st.text("abcxyz_019", min_size=1, max_size=4)
TEXTS = st.text(CHARACTERS, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


def refused(path: Path, content: str | bytes, read=read_yaml) -> str:
    """The reason, after the file's name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Explained) as e:
        read(path)
    message = str(e.value)
    assert message.startswith(str(path))
    assert len(message.splitlines()) == 1
    return message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", ", line 3: given twice: a"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", ", line 4: given twice: b"),
        ("10: 1\n010: 2\n", ", line 2: given twice: 010"),
        ("a:\n\tb: 1\n", ", line 2: "),
        ("a: !!python/object/apply:os.system [true]\n", ", line 1: "),
        ("a: &a\n  b: *a\n", ", line 1: found unconstructable recursive node"),
        (f"a: {'9' * 5000}\n", ": "),
        ("a: \0\n", ": not text at position"),
        (b"a: 1\nb: \xff\n", ", line 2: not UTF-8"),
        ("\ufeffa: 1\n".encode("utf-16-le"), ", line 1: not UTF-8"),
        ("[" * 5000 + "]" * 5000, ": lists or mappings are nested too deep"),
    ],
)
def test_an_error_names_the_file_and_the_line(tmp_path, content, reason):
    for read in (read_yaml, read_config):
        assert refused(tmp_path / "choices.yaml", content, read).startswith(reason)


# YAML 1.2.2, section 10.3.2 (the core schema), and what YAML 1.1 and PyYAML read otherwise
SCALARS_OF_1_2 = {
    **{"001": 1, "010": 10, "-0100": -100, "0o10": 8, "0x1F": 31, "1e-2": 0.01, "+.5E3": 500.0},
    **{"1.": 1.0, ".inf": math.inf, "-.INF": -math.inf, "true": True, "False": False, "~": None},
    **{
        text: text for text in ("yes", "No", "on", "OFF", "1:30", "1_000", "0b1", "2020-13-45", "=")
    },
}


@pytest.mark.parametrize(("text", "value"), SCALARS_OF_1_2.items())
def test_scalars_are_those_of_yaml_1_2(tmp_path, text, value):
    path = tmp_path / "choices.yaml"
    path.write_text(f"\ufeff{text}: [{text}]\n")
    assert repr(read_yaml(path)) == repr({value: [value]})


def write(path: Path, tree: object, flow: bool) -> str:
    """Write a tree as DVC does, which tracks the same files."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.allow_unicode = flow, True
    writer.dump(tree, path)
    return path.read_text()


@examples(60)
@given(TREES, st.booleans(), st.data())
def test_a_tree_is_read_and_a_key_given_twice_is_found_at_its_line(tmp_path, tree, flow, data):
    path = tmp_path / "choices.yaml"
    write(path, tree, flow)
    assert read_yaml(path) == read_config(path) == tree
    key = data.draw(st.sampled_from(sorted(tree)))
    text = write(path, tree, flow=False)
    said = refused(path, f"{text}{json.dumps(key)}: null\n")
    assert said == f", line {len(text.splitlines()) + 1}: given twice: {key}"


class Texts(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # pyright: ignore[reportGeneralTypeIssues]
    """PyYAML's reader, for which all scalars are text."""

    yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}  # noqa: RUF012


def shape(value: object) -> object:
    """A value without its scalars."""
    if isinstance(value, dict):
        return [shape(part) for part in value.values()]
    return {0: [shape(part) for part in value]} if isinstance(value, list) else None


@examples(200)
@given(st.text("ab:-[]{}&*!|>'\"#%@`,? \n\t0<", max_size=30) | st.text(max_size=20) | st.binary())
def test_any_text_is_read_or_refused_with_its_file(tmp_path, content):
    path = tmp_path / "choices.yaml"
    raw = content if isinstance(content, bytes) else content.encode(errors="replace")
    path.write_bytes(raw)
    try:
        value = read_yaml(path)
    except Explained as e:
        message = str(e)
    else:
        assert shape(value) == shape(yaml.load(raw, Texts))
        return
    assert message.startswith(str(path))
    assume("given twice" not in message and "not UTF-8" not in message)
    with pytest.raises((yaml.YAMLError, ValueError, RecursionError, TypeError)):
        yaml.load(raw, Texts)


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
            check_prompts(path, load(RAW).pretrained)
        assert str(error.value).startswith(f"{path}: sets.{part}.")
