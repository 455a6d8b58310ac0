"""What the configuration trains and probes in depth; what it refuses, and how it says so."""

import re
from typing import Any

import pytest
from depth_recipes import GRID, depth_grid, raw_grid
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from recipes import recipe

from normscope.config import ConfigError, load
from normscope.nn.arms import ARMS
from normscope.pilot import read_project
from normscope.studies.depth.recipe import Probe, Shape
from normscope.train.schedule import at_schedule
from normscope.train.trainer import learning_rate

MAIN = read_project(ROOT)
LN, BN = "layernorm-pre-residual-gpt2-2", "batchnorm-pre-residual-gpt2-2"
SCHEDULES = ("0.003-0-4", "0.003-2-4", "0.01-0-4", "0.01-2-4")


def test_every_shape_trains_at_every_schedule_with_all_seeds_of_a_job():
    grid = depth_grid()
    trained = grid.trainings()
    assert list(trained) == [f"{shape}-{at}-1" for shape in (LN, BN) for at in SCHEDULES]
    for job in trained.values():
        assert (job.placement, job.model.residual, job.model.init) == ("pre", True, "gpt2")
        assert (job.model.n_layer, job.model.n_embd, job.seeds) == (2, 8, [1, 2])
    rest = {"learning_rate", "min_lr", "warmup_steps", "steps"}
    for name, rate, warmup in ((f"{LN}-0.003-2-4-1", 0.003, 2), (f"{BN}-0.01-0-4-1", 0.01, 0)):
        at = trained[name].training
        assert (at.learning_rate, at.warmup_steps) == (rate, warmup)
        assert at.steps == 4 + warmup  # which takes none of them
        assert at.min_lr == pytest.approx(0.1 * rate)  # 0.001 of 0.01 in the grid
        assert at.model_dump(exclude=rest) == grid.training.model_dump(exclude=rest)


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1), st.floats(0, 1) | st.just(1.0))
def test_a_schedule_at_another_peak_is_the_same_in_proportion(peak, rate, share):
    at = recipe(learning_rate=rate, min_lr=rate * share).training
    other = at_schedule(at, peak, at.warmup_steps)
    assert other.learning_rate == peak
    assert share < 1 or other.min_lr == peak  # a constant rate stays constant
    for step in range(at.steps):
        expected = learning_rate(step, at) * peak / rate
        assert learning_rate(step, other) == pytest.approx(expected, rel=1e-12)
    rest = {"learning_rate", "min_lr"}
    assert other.model_dump(exclude=rest) == at.model_dump(exclude=rest)


def test_a_place_probes_all_of_its_shapes_at_the_start_and_where_they_are_trained():
    places = depth_grid().probes()
    assert list(places) == ["pre", "post", "none"]
    place = places["pre"]
    assert (place.windows, place.spectra) == (2, 2)

    def probe(arm: str, depth: int, **models: Any) -> Probe:
        shape = Shape(arm, "pre", True, "gpt2", depth)
        return Probe(shape=shape, norm=ARMS[arm].norm, **models)

    assert [probe for probe in place.probes if probe.shape.residual] == [
        probe("layernorm", 2, seeds=[1, 2], trained=[f"{LN}-0.003-2-4-1"]),  # in both
        probe("layernorm", 3, seeds=[1, 2], trained=[]),  # at the start alone
        probe("batchnorm", 2, seeds=[], trained=[f"{BN}-0.003-2-4-1"]),  # trained alone
    ]
    assert {probe.shape.depth for probe in place.probes if not probe.shape.residual} == {2, 3}
    assert [probe.shape.init for probe in places["none"].probes] == ["gpt2", "xavier"]


def test_a_probe_reads_the_kept_models_of_every_job_and_block_of_the_grid():
    """Two jobs of two shapes, whose third seed is beyond a full job, and one of another block."""
    more = GRID["trained"][0] | {"depths": [3], "seeds": [7], "arms": ["rmsnorm"]}
    grid = depth_grid(trained=[GRID["trained"][0] | {"seeds": [1, 2, 3]}, more])
    expected = [[f"{shape}-0.003-2-4-1", f"{shape}-0.003-2-4-3"] for shape in (LN, BN)]
    expected.append(["rmsnorm-pre-residual-gpt2-3-0.003-2-4-7"])
    assert [p.trained for p in grid.probes()["pre"].probes if p.trained] == expected
    assert grid.jobs_of_probe("pre") == [name for names in expected for name in names]
    assert grid.jobs_of_probe("post") == []


def test_blocks_may_share_models_and_each_may_have_schedules_of_its_own():
    """A block with the pilot's rates repeats models of one with a list of rates."""
    first = GRID["trained"][0]
    other = first | {"depths": [3], "learning_rates": [0.01]}
    again = first | {"learning_rates": [0.003, 0.03], "warmup_steps": [0], "seeds": [2, 3]}
    grid = depth_grid(trained=[first, other, again])
    models = [f"{cell}-{seed}" for cell, seed in grid.models()]
    assert [name for name in models if name.startswith(f"{LN}-0.003-0-4")] == [
        f"{LN}-0.003-0-4-{seed}" for seed in (1, 2, 3)
    ]
    assert [name for name in models if name.startswith(f"{LN}-0.03-")] == [
        f"{LN}-0.03-0-4-{seed}" for seed in (2, 3)
    ]
    assert f"{LN.removesuffix('2')}3-0.01-2-4-1" in models
    assert all("gpt2-2-" in name for name in grid.jobs_of_probe("pre"))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"start__0__arms": ["layernorm", "none"]}, "depth.start.0: arm none with placement p"),
        ({"trained__0__placements": ["pre", "none"]}, "depth.trained.0: arm layernorm .* none"),
        ({"kept__0__learning_rate": 0.1}, "depth: trained: .*0.1 with 2 steps"),
        ({"kept__0__warmup_steps": 1}, "depth: trained: .*0.003 with 1 steps"),
        (  # each of its parts occurs, but not together
            {"kept": [*GRID["kept"], {"learning_rate": 0.01, "warmup_steps": 3}]},
            "depth: trained: .*0.01 with 3 steps.*: add both to a block",
        ),
        (  # of one shape
            {"kept": [*GRID["kept"], {"learning_rate": 0.003, "warmup_steps": 0}]},
            "depth: kept: layernorm-pre-residual-gpt2-2 is trained at .* with 0 .* with 2 .* one",
        ),
        ({"start__1": GRID["start"][0]}, "depth.start: .*twice: layernorm-post-plain-gpt2-2"),
        (  # of one shape in two blocks
            {"trained": [GRID["trained"][0], GRID["trained"][0] | {"steps": 5}]},
            "depth.trained: .*layernorm-pre-residual-gpt2-2 has 4 steps and 5",
        ),
        ({"trained__0__init": ["flat"]}, "depth.trained.0.init.0: .*'gpt2_flat' or 'xavier'"),
        # from within a recipe
        ({"sizes__n_head": 3}, r"depth: sizes: n_embd \(8\)"),
        ({"sizes__n_head": 3, "trained": []}, r"depth: sizes: n_embd \(8\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key_in_one_line(changes, names):
    with pytest.raises(ConfigError) as e:
        load(MAIN | {"depth": raw_grid(**changes)})
    _, line = str(e.value).splitlines()
    assert re.search(names, line)
