"""What all studies share: jobs, declared tables, and what came of trainings on several texts."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from recipes import recipe as stack_recipe
from recipes import with_changes

from normscope.columns import SHARE, Column, Table, count, flag, key, text
from normscope.config import load
from normscope.errors import Explained
from normscope.io import dataset
from normscope.io.tables import as_declared, check, read_table, write_tables
from normscope.io.texts import text_of
from normscope.nn.arms import ARMS
from normscope.pilot import read_project
from normscope.studies.outcome import with_outcomes
from normscope.studies.stage import declared_tables
from normscope.studies.study import blocks
from normscope.train.recipe import flops

MAIN = read_project(ROOT)


def one_text(cell: str, seed: int) -> str:
    return "dataset"


def test_a_job_has_one_text_and_each_hundred_of_seeds_the_next():
    models = [("a", seed) for seed in (1, 2, 101, 102, 201, 301)]
    jobs = blocks(models, 300, lambda cell, seed: text_of(["austen", "woolf"], seed))
    assert [seeds for _, seeds in jobs.values()] == [[1, 2], [101, 102], [201], [301]]
    assert [text_of(["austen", "woolf"], s) for s in (1, 101, 201)] == ["austen", "woolf", "austen"]


def test_seeds_share_a_job_by_their_numbers():
    models = [("a", 8), ("b", 101), ("a", 2), ("a", 0), ("a", 7), ("b", 100), ("a", 1), ("a", 4)]
    assert list(blocks(models, 3, one_text).items()) == [
        ("a-0", ("a", [0])),
        ("a-1", ("a", [1, 2])),
        ("a-4", ("a", [4])),
        ("a-7", ("a", [7, 8])),
        ("b-100", ("b", [100])),
        ("b-101", ("b", [101])),
    ]
    assert blocks([], 3, one_text) == {}


@given(
    st.lists(st.integers(0, 300), min_size=1, unique=True), st.integers(1, 12), st.integers(0, 300)
)
def test_one_more_seed_is_the_work_of_one_job_wherever_it_stands(
    seeds: Sequence[int], size: int, new: int
):
    before = blocks([("a", seed) for seed in seeds if seed != new], size, one_text)
    for place in (0, len(seeds) // 2, len(seeds)):
        listed = [seed for seed in seeds if seed != new]
        listed.insert(place, new)
        after = blocks([("a", seed) for seed in listed], size, one_text)
        assert sorted(s for _, some in after.values() for s in some) == sorted(listed)
        (job,) = [job for job in after.values() if new in job[1]]
        assert len(job[1]) <= size
        others = [one for one in before.values() if not set(one[1]) & set(job[1])]
        assert [one for one in after.values() if one != job] == others


def test_flops_are_six_for_every_parameter_and_token_of_every_seed():
    sizes: dict[str, Any] = {"n_layer": 2, "n_head": 1, "n_embd": 10, "block_size": 5}
    stack = stack_recipe(seeds=[4, 5, 6, 7], steps=3, batch_size=7, **sizes)
    # 3 x 7 x 5 tokens, two blocks of 12 x 100 weights, and 2 x 5 x 10 for scores and averages
    assert flops(stack) == 4 * 6 * 105 * 2 * (1200 + 100)


def test_the_number_of_seeds_per_job_does_not_change_the_total_work():
    stacked = ("main", "recall", "jacobian", "depth")
    alone = {name: MAIN[name] | {"stack": 1} for name in stacked}
    both = (load(MAIN), load(MAIN | alone))
    for before, after in zip(*(config.studies.values() for config in both), strict=True):
        works = [sum(p.training_flops().values()) for p in (before, after)]
        assert works[0] == pytest.approx(works[1])


@pytest.mark.parametrize(
    ("study", "grid", "cells"),
    [  # the number of cells in a block of config.yaml
        ("main", "main.runs.0", 1),
        ("recall", "recall.runs.6", 1),
        ("jacobian", "jacobian.runs.0", 2),
        ("depth", "depth.trained.0", 8),
    ],
)
def test_a_seed_beyond_full_jobs_is_one_job_of_each_of_its_cells(study, grid, cells):
    """No other job changes, of this study or of another."""
    stack = load(MAIN).studies[study].stack  # pyright: ignore[reportAttributeAccessIssue]
    seeds = list(range(1, stack + 2))
    first = load(with_changes(MAIN, ".", {f"{grid}.seeds": seeds[:-1]}))
    more = load(with_changes(MAIN, ".", {f"{grid}.seeds": seeds}))
    for name in first.studies:
        before, after = first.studies[name].trainings(), more.studies[name].trainings()
        new = after.keys() - before.keys()
        assert len(new) == (cells if name == study else 0)
        assert all(job.endswith(f"-{stack + 1}") for job in new)
        assert all(after[job].model_dump()["seeds"] == [stack + 1] for job in new)
        assert before == {job: recipe for job, recipe in after.items() if job not in new}
        probes = more.studies[name].probes().keys() - first.studies[name].probes().keys()
        # a probing job of depth or recall measures several training jobs
        assert probes == (set() if name in ("depth", "recall") else new)


@pytest.mark.parametrize("name", ["main", "recall", "jacobian", "depth"])
def test_a_job_has_the_factors_of_its_cell_which_the_tables_know_and_no_names(name):
    """Renaming an arm or a protocol would train nothing again."""
    config = load(MAIN)
    study: Any = config.studies[name]
    cells, trained = study.tabulation(config.settings).jobs, study.trainings()
    assert cells.keys() == trained.keys()
    for job, cell in cells.items():
        stack = trained[job]
        assert job == f"{cell}-{stack.seeds[0]}"
        assert stack.norm == ARMS[cell.arm].norm
        assert stack.training.learning_rate == cell.learning_rate
        if "placement" in cell._fields:
            assert stack.placement == cell.placement
        # two names are those of values as well
        names = {cell.arm, getattr(cell, "protocol", "none")} - {"none", "detached"}
        assert not [text for text in names if f'"{text}"' in stack.model_dump_json()]


@pytest.mark.parametrize("path", [None, *sorted((ROOT / "config").glob("*.yaml"))])
def test_every_recipe_survives_the_command_line(path):
    """As the scripts read it; and the name of every job is a name of a file."""
    config = load(read_project(ROOT, *filter(None, [path])))
    for study in config.studies.values():
        trainings, probes = study.trainings(), study.probes()
        tables = study.tabulation(config.settings)
        for recipe in (*trainings.values(), *probes.values(), tables):
            assert type(recipe).model_validate_json(recipe.model_dump_json()) == recipe
        for job in (*trainings, *probes):
            assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", job)  # Snakefile, wildcard name


TABLE = Table(
    "one trained model",
    (
        key("arm", "arm"),
        key("seed", "seed", int),
        Column("accuracy", "accuracy", range=SHARE),
        count("parameters", "parameters"),
        flag("failed", "whether it failed"),
        text("note", "what else is known"),
    ),
    "normscope.train.session.train",
)


def frame() -> pd.DataFrame:
    rows = [("NA", 1, 0.5, 10, True, "NA"), ("b", 1, None, None, False, None)]
    table = pd.DataFrame(rows, columns=TABLE.names)
    return table.astype({"parameters": "Int64"})


def with_value(column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.astype({column: object}).assign(**{column: value})


def test_a_table_is_read_as_it_was_written(tmp_path: Path):
    """Also where a text reads NA, and where numbers are missing."""
    write_tables(tmp_path, {"runs": frame()})
    again = read_table(tmp_path / "runs.csv", TABLE)
    pd.testing.assert_frame_equal(again, frame(), check_dtype=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="accuracy"), "it lacks accuracy"),
        (lambda t: t.assign(more=1), "more not declared"),
        (lambda t: t.assign(arm="b"), "several rows have arm b, seed 1"),
        (with_value("accuracy", 1.01), r"accuracy has 1.01, which is outside \[0.0, 1.0\]"),
        (with_value("accuracy", "high"), "accuracy has 'high', which is not float"),
        (with_value("parameters", 1.5), "parameters has 1.5, which is not a whole number"),
        (with_value("failed", "yes"), "failed has 'yes', which is not bool"),
        (with_value("note", 3), "note has 3, which is not str"),
        (with_value("seed", None), "seed is missing in a row"),
    ],
)
def test_a_table_that_does_not_fit_its_declaration_is_named(change, words):
    check("runs", frame(), TABLE)
    with pytest.raises(Explained, match=f"runs.csv does not fit its declaration: {words}"):
        check("runs", change(frame()), TABLE)


def test_tables_are_those_that_are_declared_with_columns_in_declared_order():
    shuffled = {"runs": frame()[TABLE.names[::-1]]}
    assert list(as_declared(shuffled, {"runs": TABLE})["runs"]) == TABLE.names
    with pytest.raises(Explained, match="not both: chosen, runs"):
        as_declared(shuffled, {"chosen": TABLE})


@pytest.mark.parametrize("study", declared_tables())
def test_a_study_declares_each_column_once_with_a_meaning_and_a_function_that_exists(study):
    for table in declared_tables()[study].values():
        assert len(table.by_name) == len(table.columns)
        for column in table.columns:
            assert column.meaning
            assert column.meaning[-1] != "."
            assert callable(resolve_name(table.source_of(column.name))), column.name


TEXTS = {"one": ["dataset"], "two": ["second"], "short": ["third"]}
HALVES, QUARTERS = "ab" * 50, "abcd" * 25  # ln 2 and ln 4 per character: uniform is optimal
RISING = "aaab" * 225 + "aaab" * 12 + "b" * 52  # the second half of the last 100 is all b


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = {"": HALVES, "second": QUARTERS, "third": RISING}
    for folder, content in ((tmp_path / name, content) for name, content in texts.items()):
        folder.mkdir(exist_ok=True)
        for name, raw in dataset.files(dataset.encode(content)).items():
            (folder / name).write_bytes(raw)
    return tmp_path


def test_each_model_is_held_against_the_text_that_it_learned(corpus: Path):
    """The same losses: between ln 2 and ln 4 a model of the first text failed, one of the second
    did not. Detects outcomes by one text for all, and rows in another order."""
    rows = [("two", 1.0), ("one", 1.0), ("two", 9.0), ("one", 0.3), ("two", math.nan)]
    table = pd.DataFrame(rows, columns=["protocol", "val_loss"])
    table = table.assign(diverged_at=[math.nan] * 4 + [7.0], seed=1)
    made = with_outcomes(table, corpus, TEXTS, dict.fromkeys(TEXTS))
    assert list(made["protocol"]) == ["two", "one", "two", "one", "two"]
    assert list(made["capped_loss"]) == [1.0, math.log(2), math.log(4), 0.3, math.log(4)]
    assert list(made["failed"]) == [0, 1, 1, 0, 1]


def test_a_model_failed_by_the_characters_over_which_its_loss_is(corpus: Path):
    """Their frequencies cost 0.57 nats on the first 48 validation characters, and 1.0 on all."""
    columns = {"protocol": ["short"], "seed": [1], "val_loss": [0.6], "diverged_at": [math.nan]}
    table = pd.DataFrame(columns)
    first, every = (
        with_outcomes(table, corpus, TEXTS, {"short": tokens})["failed"].item()
        for tokens in (48, None)
    )
    assert (first, every) == (1, 0)
