"""The recall test's configuration: what it trains, under which names, and what is refused."""

import re
from typing import Any

import pytest
from pydantic import ValidationError
from recipes import with_changes

from normscope.studies.recall.grid import Recall
from normscope.studies.study import Settings

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


def grid(**changes: Any) -> Recall:
    """The grid with values set at dotted keys."""
    return Recall.model_validate(with_changes(GRID, ".", changes), strict=True)


def test_every_arm_trains_at_every_rate_with_the_seeds_of_its_blocks_after_the_published():
    """A cell that is published and in a block has the seeds of both, each trained once."""
    trained = grid(stack=2, **{"runs.1.seeds": [4, 1337, 9]}).trainings()
    assert {name: job.seeds for name, job in trained.items()} == {
        "copy-layernorm-0.0001-1337": [1337],
        "copy-layernorm-0.0001-4": [4],
        "copy-layernorm-0.0001-9": [9],
        "copy-none-0.0005-1337": [1337],
        **{
            f"hard_2-{arm}-{rate}-1": [1, 2]
            for arm in ("layernorm", "none", "manual_l2")
            for rate in ("0.01", "0.00001")
        },
    }


def test_every_job_is_probed_with_those_of_its_task():
    names, probes = list(grid().trainings()), grid().probes()
    assert list(probes) == ["copy", "hard_2"]
    assert [name for probe in probes.values() for name in probe.jobs] == names
    assert {cell.task for cell in probes["hard_2"].jobs.values()} == {"hard_2"}
    assert list(probes["copy"].jobs) == grid().jobs_of_probe("copy")
    assert {probe.directions for probe in probes.values()} == {3}
    assert grid().tabulation(Settings(level=0.9, baseline=[])).probes == ["copy", "hard_2"]


def test_corrected_cells_have_the_published_arms_unless_others_are_given():
    published, corrected = grid().published_cells(), grid().corrected_cells()
    assert list(map(str, published)) == ["copy-layernorm-0.0001", "copy-none-0.0005"]
    assert list(map(str, corrected)) == ["hard_2-layernorm-0.01", "hard_2-none-0.01"]
    more = grid(**{"corrected.arms": ["none", "manual_l2"]}).corrected_cells()
    assert list(map(str, more)) == ["hard_2-none-0.01", "hard_2-manual_l2-0.01"]


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("published.task", "copyy", "published.task: .*copyy.*copy, hard_2"),
        ("corrected.task", "copy", "corrected.task: copy"),
        ("runs.1.task", "copyy", "runs.1.task: .*copyy"),
        ("tasks", GRID["tasks"] | {"a/b": {"kind": "copy", "steps": 1}}, "tasks.a/b"),
        ("runs.0.arms", ["none", "layernorm", "none"], "runs.0.arms: .*twice: none"),
        ("published.arms", [GRID["published"]["arms"][0]] * 2, "published: .*twice: layernorm"),
        ("runs.0.arms", ["layernorm"], "hard_2-none-0.01"),  # which corrected needs
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(key, value, names):
    with pytest.raises(ValidationError) as e:
        grid(**{key: value})
    (error,) = e.value.errors()
    assert re.search(names, f"{'.'.join(map(str, error['loc']))}: {error['msg']}")
