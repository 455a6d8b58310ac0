"""``load``, ``models``, ``table`` and ``tables`` with whatever they are given."""

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import stored_models
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from recipes import recipe

import normscope
from normscope.io.csvfile import write_csv
from normscope.io.stored import Damaged

NAME = "main.tiny-rmsnorm-peri-0.01-7"
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=9),
    st.binary(max_size=9),
    st.lists(st.integers(), max_size=3),
    st.sampled_from(["1337", "7", 7.0, 10**30, -1, "main", NAME.upper(), "a\0b", "a" * 5000, ".."]),
    st.builds(object),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A run with a table and two models."""
    folder = tmp_path_factory.mktemp("run")
    write_csv(folder / "main/tables/words.csv", pd.DataFrame({"x": [1.5, 2.5]}))
    stack = recipe("rmsnorm", "peri", seeds=[7, 8])
    stored_models.write(folder / "main/models/tiny-rmsnorm-peri-0.01-7", stack, [2.0, 2.5])
    return folder


@pytest.fixture
def run(stored, tmp_path) -> Path:
    """A copy of it, to damage."""
    shutil.copytree(stored, tmp_path / "run")
    return tmp_path / "run"


def explained(call: Callable[[], object], argument: str) -> None:
    with pytest.raises(normscope.Explained, match=argument) as error:
        call()
    assert "\n" not in str(error.value)


@given(value=ANYTHING)
@examples(40)
def test_a_name_of_any_type_is_an_error_that_repeats_it(stored, value):
    explained(lambda: normscope.load(value, results=stored), "name is of type|no trained model")
    explained(lambda: normscope.table(value, stored), "name is of type|no table")


@given(value=ANYTHING)
@examples(40)
def test_a_seed_of_any_type_is_that_of_a_model_or_an_error(stored, value):
    if value is None or (type(value) is int and value in (7, 8)):
        assert normscope.load(NAME, value, stored)
    else:
        explained(lambda: normscope.load(NAME, value, stored), "seed is of type|has no seed")


@given(value=ANYTHING)
@examples(40)
def test_a_folder_of_any_type_is_an_error_that_names_the_argument(stored, value):
    if value == "..":
        return
    for look in (normscope.models, normscope.tables):
        explained(lambda look=look: look(value), "results|has no t")
    explained(lambda: normscope.load(NAME, 7, value), "results|has no t")
    explained(lambda: normscope.table("main.words", value), "results|has no t")


def test_a_file_or_a_name_that_leads_nowhere_is_no_folder(stored, tmp_path):
    for place in (stored / "main/tables/words.csv", tmp_path / "none", tmp_path / "none/below"):
        explained(lambda place=place: normscope.models(place), "there is no folder")
    explained(lambda: normscope.models(stored / "main"), "has no trained models")


def test_seeds_of_tables_and_folders_as_text_are_taken(stored):
    table = normscope.models(str(stored))
    for seed in (*table["seed"], np.int32(7), None):
        assert normscope.load(NAME, seed, str(stored)) is not None


def resealed(job: Path) -> None:
    """Sums that fit: the damage is older than they are."""
    kept = [f for f in job.iterdir() if f.name != "SHA256SUMS" and f.is_file()]
    sums = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in kept)
    (job / "SHA256SUMS").write_text("".join(sums))


@pytest.mark.parametrize("file", ["config.json", "metrics.csv", "models.safetensors"])
@given(content=st.one_of(st.binary(max_size=40), st.sampled_from([b"[]", b'"norm"', b"{}", b"1"])))
@examples(15)
def test_a_file_with_any_content_is_an_error_that_names_it(file, content, tmp_path_factory, stored):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(stored, folder)
    job = folder / "main/models/tiny-rmsnorm-peri-0.01-7"
    (job / file).write_bytes(content)
    for reseal in (False, True):
        if reseal:
            resealed(job)
        with pytest.raises(Damaged, match=file.replace(".", r"\.")):
            normscope.load(NAME, 7, folder)
    if file != "models.safetensors":
        with pytest.raises(Damaged, match=file.replace(".", r"\.")):
            normscope.models(folder)


@pytest.mark.parametrize("change", ["no_parameters", "no_rows", "a_seed_twice"])
def test_metrics_without_a_row_per_model_are_damaged(run, change):
    job = run / "main/models/tiny-rmsnorm-peri-0.01-7"
    table = pd.read_csv(job / "metrics.csv")
    changes: dict[str, Any] = {
        "no_parameters": table.drop(columns="parameters"),
        "no_rows": table[:0],
        "a_seed_twice": pd.concat([table, table]),
    }
    changes[change].to_csv(job / "metrics.csv", index=False)
    resealed(job)
    for call in (lambda: normscope.models(run), lambda: normscope.load(NAME, 7, run)):
        with pytest.raises(Damaged, match=r"metrics\.csv"):
            call()


@given(content=st.binary(max_size=40))
@examples(25)
def test_a_table_with_any_content_is_a_table_or_an_error(content, stored, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "main/tables/words.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with contextlib.suppress(Damaged):
        assert isinstance(normscope.table("main.words", path.parents[2]), pd.DataFrame)


def test_the_ways_to_a_table_that_fail_are_errors(run):
    tables = run / "main/tables"
    (tables / "folder.csv").mkdir()
    (tables / "empty.csv").touch()
    for name in ("folder", "empty"):
        with pytest.raises(Damaged, match=f"{name}\\.csv"):
            normscope.table(f"main.{name}", run)
