"""The decisive test's configuration: what it trains, under which names, and what is refused."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from recipes import changed

from normscope.nn.arms import ARMS
from normscope.schema import rate_name
from normscope.studies.recall.grid import Cell, Recall
from normscope.studies.recall.tables import cell_key

GRID = {
    "tasks": {"copy": {"kind": "copy", "steps": 7}, "hard_2": {"kind": "recall", "steps": 9}},
    "published": {
        "task": "copy",
        "arms": [
            {"arm": "layernorm", "learning_rate": 0.0001},
            {"arm": "none", "learning_rate": 0.0005},
        ],
        "seeds": [1337],
    },
    "corrected": {"task": "hard_2", "learning_rate": 0.01},
    "runs": [
        {
            "task": "hard_2",
            "arms": ["layernorm", "none", "manual_l2"],
            "learning_rates": [0.01, 1e-5],
            "seeds": [1, 2],
        },
        {"task": "copy", "arms": ["layernorm"], "learning_rates": [0.0001], "seeds": [4]},
    ],
    "directions": 3,
}
rates = st.floats(1e-12, 1e6, exclude_min=True)


def grid(**changes: Any) -> Recall:
    """The grid with values set at dotted keys."""
    return Recall.model_validate(changed(GRID, ".", changes), strict=True)


def problem(**changes: Any) -> str:
    with pytest.raises(ValidationError) as e:
        grid(**changes)
    (error,) = e.value.errors()
    return f"{'.'.join(map(str, error['loc']))}: {error['msg'].removeprefix('Value error, ')}"


def test_every_arm_trains_with_every_rate_and_seed_of_its_block_after_the_published_ones():
    names = list(grid().trained())
    assert names == [
        "copy-layernorm-0.0001-1337",
        "copy-none-0.0005-1337",
        *(
            f"hard_2-{arm}-{rate}-{seed}"
            for arm in ("layernorm", "none", "manual_l2")
            for rate in ("0.01", "0.00001")
            for seed in (1, 2)
        ),
        "copy-layernorm-0.0001-4",
    ]


def test_a_cell_has_the_seeds_of_every_block():
    cells = grid().cells()
    assert cells["copy-layernorm-0.0001"] == [1337, 4]
    assert cells["copy-none-0.0005"] == [1337]
    assert cells["hard_2-manual_l2-0.00001"] == [1, 2]
    runs = [f"{cell}-{seed}" for cell, seeds in cells.items() for seed in seeds]
    assert sorted(runs) == sorted(grid().trained())


def test_a_run_has_the_factors_of_its_arm_and_the_task_and_no_names():
    run = grid().trained()["hard_2-manual_l2-0.00001-2"]
    assert (run.norm, run.learning_rate, run.seed) == (ARMS["manual_l2"].norm, 1e-5, 2)
    assert (run.task.kind, run.task.steps) == ("recall", 9)
    for name in ("manual_l2", "hard_2"):
        assert name not in run.model_dump_json()


def test_published_and_corrected_cells_are_of_the_same_arms():
    assert list(map(str, grid().published_cells())) == [
        "copy-layernorm-0.0001",
        "copy-none-0.0005",
    ]
    assert list(map(str, grid().corrected_cells())) == ["hard_2-layernorm-0.01", "hard_2-none-0.01"]


def test_a_published_run_may_be_in_a_block_too_and_trains_once():
    names = list(grid(**{"runs.1.seeds": [4, 1337]}).trained())
    assert names.count("copy-layernorm-0.0001-1337") == 1


@pytest.mark.parametrize("key", ["published.task", "corrected.task", "runs.0.task", "runs.1.task"])
def test_an_unknown_task_is_named_with_the_known_ones(key):
    assert problem(**{key: "copyy"}) == f": {key}: unknown task 'copyy'; known: copy, hard_2"


@pytest.mark.parametrize("name", ["Copy", "a-b", "a b", "", "a.b", "a/b"])
def test_a_task_whose_name_is_no_part_of_a_file_name_is_refused(name):
    tasks = {**GRID["tasks"], name: {"kind": "copy", "steps": 1}}
    assert "should match pattern" in problem(tasks=tasks)


@pytest.mark.parametrize("key", ["published.arms.0.arm", "runs.0.arms.1"])
def test_an_unknown_arm_is_named_with_its_neighbours(key):
    message = problem(**{key: "layernrom"})
    assert message.startswith(f"{key}: unknown arm 'layernrom'; nearest: layernorm, ")
    assert message.endswith(f"known: {', '.join(ARMS)}")


@pytest.mark.parametrize(
    ("key", "value", "twice"),
    [
        ("runs.0.arms", ["none", "layernorm", "none"], "none"),
        ("runs.0.seeds", [1, 1], "1"),
        ("runs.0.learning_rates", [0.01, 0.010], "0.01"),
        ("published.seeds", [1337, 1337], "1337"),
        ("published.arms", [GRID["published"]["arms"][0]] * 2, "layernorm"),
    ],
)
def test_a_value_given_twice_is_named(key, value, twice):
    assert problem(**{key: value}).endswith(f": given twice: {twice}")


def test_a_run_in_two_blocks_is_named():
    again = {"task": "hard_2", "arms": ["none"], "learning_rates": [1e-5], "seeds": [2, 3]}
    message = problem(runs=[*GRID["runs"], again])
    assert message == ": given twice: hard_2-none-0.00001-2"


@pytest.mark.parametrize("key", ["runs", "runs.0.arms", "runs.0.learning_rates", "runs.0.seeds"])
def test_an_empty_list_is_refused(key):
    assert "at least 1 item" in problem(**{key: []})


def test_a_published_arm_without_a_corrected_run_is_named_with_the_way_out():
    message = problem(**{"runs.0.arms": ["layernorm"]})
    assert message == (
        ": no run of hard_2-none-0.01 to stand beside the published arm none: "
        "add task hard_2, arm none and learning rate 0.01 to runs"
    )


@pytest.mark.parametrize("value", [0.0, -0.1, float("nan"), float("inf"), "0.1"])
@pytest.mark.parametrize("key", ["runs.0.learning_rates.0", "published.arms.0.learning_rate"])
def test_a_learning_rate_that_is_no_positive_number_is_refused(key, value):
    assert problem(**{key: value}).startswith(key)


@pytest.mark.parametrize(
    ("rate", "name"),
    [
        (0.1, "0.1"),
        (1.0, "1.0"),
        (1e-4, "0.0001"),
        (1e-5, "0.00001"),
        (2.5e-7, "0.00000025"),
        (0.30000000000000004, "0.30000000000000004"),
        (1e16, "10000000000000000"),
    ],
)
def test_rates_are_written_out(rate, name):
    assert rate_name(rate) == name


@given(rate=rates)
def test_a_name_is_plain_decimal_and_exact(rate):
    name = str(Cell("copy", "layernorm_gain", rate))
    assert re.fullmatch(r"[a-z0-9_]+-[a-z0-9_]+-[0-9.]+", name)  # Snakefile, wildcard cell
    assert Decimal(name.rpartition("-")[2]) == Decimal(repr(rate))
    assert cell_key(name) == {"task": "copy", "arm": "layernorm_gain", "learning_rate": rate}


@given(one=rates, other=rates)
def test_two_rates_have_two_names(one, other):
    assert (rate_name(one) == rate_name(other)) == (one == other)


RATES = ["published.arms.0.learning_rate", "corrected.learning_rate", "runs.0.learning_rates.0"]


@pytest.mark.parametrize("key", RATES)
@pytest.mark.parametrize(
    ("rate", "kept"), [(0.00012345678949, "0.000123456789"), (1 / 3, "0.333333333")]
)
def test_a_rate_that_tables_do_not_keep_is_refused_with_the_one_that_they_keep(key, rate, kept):
    message = problem(**{key: rate})
    assert message.startswith(f"{key}: tables keep 9 digits")
    assert f"{rate!r} is {kept}: give that" in message
    grid(**{"runs.1.learning_rates.0": float(kept)})


@pytest.mark.parametrize(
    ("task", "kind", "reads"),
    [
        ("copy", "recall", "published.task: copy is not of kind copy"),
        ("hard_2", "copy", "corrected.task: hard_2 is not of kind recall"),
    ],
)
def test_a_task_of_the_other_kind_is_named(task, kind, reads):
    assert problem(**{f"tasks.{task}.kind": kind}).endswith(reads)
