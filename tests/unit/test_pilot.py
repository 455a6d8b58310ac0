"""Learning rates of the pilot: what is tried, what is chosen, and what is refused."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from normscope.config import load
from normscope.errors import Explained
from normscope.io.yamlfile import read_config
from normscope.pilot import open_cells, read_project, with_pilot, with_rates
from normscope.studies.cells import Cell
from normscope.studies.pilot import Pilot, Trial, losses_of, read_trials, write_trials

ROOT = Path(__file__).parents[2]
CELL = Cell("small", "layernorm", "pre", 1.0)


def trials(**losses: float | None) -> list[Trial]:
    """Rows of the cell ``CELL``, by rates written as ``r0_003``."""
    return [
        Trial(
            "main",
            str(CELL._replace(learning_rate=float(rate[1:].replace("_", ".")))),
            "1 2",
            "dataset",
            "" if loss is None else str(loss),
        )
        for rate, loss in losses.items()
    ]


def pilot(**losses: float | None) -> Pilot:
    return Pilot(losses=losses_of(trials(**losses)))


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ({}, [0.001, 0.002, 0.005]),  # the rates that are tried first
        ({"r0_002": 1.0}, [0.001, 0.005]),  # it was interrupted
        ({"r0_001": 2.0, "r0_002": 1.0, "r0_005": 2.0}, []),  # the best lies inside
        ({"r0_001": 1.0, "r0_002": 2.0, "r0_005": 3.0}, [0.0005]),
        ({"r0_001": 3.0, "r0_002": 2.0, "r0_005": 1.0}, [0.01]),
        ({"r0_02": 3.0, "r0_05": 2.0, "r0_1": 1.0}, []),  # at the limit
        ({"r0_001": 3.0, "r0_002": 2.0, "r0_005": None}, []),  # a model diverged there
        ({"r0_001": None, "r0_002": None, "r0_005": None}, [0.0005]),
        ({"r0_001": 1.0, "r0_002": 1.0, "r0_005": 2.0}, [0.0005]),  # the smallest of equals
    ],
)
def test_rates_are_tried_until_the_best_lies_inside_or_at_a_limit(losses, expected):
    assert pilot(**losses).next_rates("main", CELL) == expected


def raw() -> dict[str, Any]:
    """The project's configuration with one block for the pilot, of two arms."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    tiny = yaml.safe_load((ROOT / "config/tiny.yaml").read_text())
    block = {"protocol": "small", "arms": ["layernorm", "rmsnorm"], "placements": ["pre"]}
    runs = [*tiny["main"]["runs"][:1], {**block, "learning_rates": "pilot", "seeds": [7, 8]}]
    names = ("recall", "jacobian")
    others = {name: config[name] | {"runs": tiny[name]["runs"]} for name in names}
    others["recall"] |= {key: tiny["recall"][key] for key in ("tasks", "published", "corrected")}
    others["jacobian"] |= {"protocols": tiny["jacobian"]["protocols"]}
    others["norms"] = config["norms"] | tiny["norms"]
    return config | others | {"main": config["main"] | {"runs": runs}}


BOTH = [
    *trials(r0_001=2.0, r0_003=1.0, r0_01=3.0),
    *(t._replace(cell=t.cell.replace("layernorm", "rmsnorm")) for t in trials(r0_001=1.0, r0_01=2)),
]


def test_each_cell_has_the_rate_with_the_least_pilot_loss_and_its_tables_say_so():
    config = load(with_pilot(raw(), BOTH))
    models = [(str(cell), seed) for cell, seed in config.main.models()][-4:]
    assert models == [
        (f"small-{cell}", seed)
        for cell in ("layernorm-pre-0.003", "rmsnorm-pre-0.001")
        for seed in (7, 8)
    ]
    known = config.main.pilot_choices(config.settings)
    assert {name: (one.loss, one.at_edge) for name, one in known.items()} == {
        "small-layernorm-pre-0.003-7": (1.0, False),
        "small-rmsnorm-pre-0.001-7": (1.0, True),
    }


def test_cells_without_pilot_models_are_named():
    with pytest.raises(Explained, match=r"make pilot(.|\n)*main: small, rmsnorm, pre$"):
        with_pilot(raw(), BOTH[:3])
    assert [str(one) for one in open_cells(raw())] == [
        "main: small, layernorm, pre", "main: small, rmsnorm, pre"
    ]  # fmt: skip


def test_no_test_rests_on_a_pilot_seed():
    config = raw()
    config["main"]["runs"][-1]["seeds"] = [2, 7]
    with pytest.raises(Explained, match=r"main: small, layernorm, pre would be .* seeds 2, which"):
        with_pilot(config, BOTH)


@pytest.mark.parametrize(
    ("key", "value", "reported"),
    [("arms", ["layernrom"], "layernrom"), ("protocol", "smal", "smal"), ("seeds", [], "seeds")],
)
def test_what_else_is_wrong_with_a_block_is_reported_and_not_the_word(key, value, reported):
    config = raw()
    config["main"]["runs"][-1][key] = value
    with pytest.raises(Explained) as error:
        load(with_rates(config, Pilot()))
    assert reported in str(error.value)
    assert "'pilot'" not in str(error.value)


def test_a_file_keeps_its_rows_and_a_later_one_wins(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    write_trials(first, BOTH)
    assert sorted(read_trials([first])) == sorted(BOTH)
    write_trials(second, [BOTH[0]._replace(loss="")])
    losses = losses_of(read_trials([first, tmp_path / "missing.csv", second]))
    assert losses["main"][BOTH[0].cell] is None
    assert Pilot(losses=losses).losses_by_rate("main", CELL)[0.001] == math.inf


def test_the_kept_pilot_chose_inside_its_rates_or_at_a_limit_and_used_its_own_seeds():
    config = read_config(ROOT / "config.yaml")
    rows = read_trials([ROOT / "data/pilot.csv"])
    losses = losses_of(rows)
    plan = Pilot.model_validate({**config["pilot"], "losses": losses})
    assert {row.seeds for row in rows if row.study == "norms"} == {" ".join(map(str, plan.seeds))}
    assert {row.seeds for row in rows if row.study not in ("norms", "depth")} == {"1 2"}
    assert not [str(one) for one in open_cells(config) if plan.next_rates(one.study, one.cell)]
    # the rates of depth were chosen on seeds of an earlier run, which no test uses either
    earlier = {int(seed) for row in rows if row.study == "depth" for seed in row.seeds.split()}
    for name in ("config.yaml", "config/paper.yaml"):
        models = load(read_project(ROOT, ROOT / name)).depth.models()
        assert models
        assert not earlier & {seed for _, seed in models}
