"""What the configuration trains and probes in depth; what it refuses, and how it says so."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from depth_recipes import GRID, KEPT, depth_grid, raw_grid
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from recipes import recipe
from snakemake.utils import update_config

from normscope.config import ConfigError, load
from normscope.nn.arms import ARMS
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.recipe import EnsembleRecipe, Probe, Schedule, Shape
from normscope.train.schedule import at_peak
from normscope.train.trainer import learning_rate

ROOT = Path(__file__).parents[2]
MAIN = yaml.safe_load((ROOT / "config.yaml").read_text())
TRAINED = ["layernorm-pre-residual-gpt2-2", "batchnorm-pre-residual-gpt2-2"]


def test_a_shape_names_its_files():
    shape = Shape("layernorm", "pre", True, "gpt2", 24)
    assert str(shape) == "layernorm-pre-residual-gpt2-24"
    assert str(shape._replace(residual=False)) == "layernorm-pre-plain-gpt2-24"


def test_a_trained_shape_has_a_recipe_by_its_name():
    recipes = depth_grid().trainings()
    assert list(recipes) == TRAINED
    made = recipes[TRAINED[1]]
    assert made.norm == ARMS["batchnorm"].norm
    assert (made.placement, made.model.residual, made.model.init) == ("pre", True, "gpt2")
    assert (made.model.n_layer, made.model.n_embd) == (2, 8)
    assert made.kept.model_dump() == KEPT
    assert "batchnorm" not in made.model_dump_json()  # a run has factors, no names


def test_every_schedule_trains_with_every_seed_and_its_own_end_of_the_cosine():
    made = depth_grid().trainings()[TRAINED[0]]
    expected = [(r, w, s) for r in (0.003, 0.01) for w in (0, 2) for s in (1, 2)]
    assert [(*schedule, seed) for schedule, seed in made.runs()] == expected
    for (schedule, seed), run in made.runs().items():
        assert run.seed == seed
        assert run.training.learning_rate == schedule.learning_rate
        assert run.training.warmup_steps == schedule.warmup_steps
        # 0.001 of 0.01 in the grid
        assert run.training.min_lr == pytest.approx(0.1 * schedule.learning_rate)
        rest = {"learning_rate", "min_lr", "warmup_steps"}
        assert run.training.model_dump(exclude=rest) == depth_grid().training.model_dump(
            exclude=rest
        )


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1), st.floats(0, 1))
def test_a_schedule_at_another_peak_is_the_same_in_proportion(peak, rate, share):
    at = recipe(learning_rate=rate, min_lr=rate * share).training
    other = at_peak(at, peak)
    assert other.learning_rate == peak
    for step in range(at.steps):
        expected = learning_rate(step, at) * peak / rate
        assert learning_rate(step, other) == pytest.approx(expected, rel=1e-12)
    rest = {"learning_rate", "min_lr"}
    assert other.model_dump(exclude=rest) == at.model_dump(exclude=rest)


def test_a_place_probes_all_of_its_shapes_with_the_seeds_of_both_parts():
    places = depth_grid().probes()
    assert list(places) == ["pre", "post", "none"]
    place = places["pre"]
    assert place.placement == "pre"
    assert (place.windows, place.spectra) == (2, 2)
    ln, gpt2 = "layernorm", "gpt2"

    def probe(arm: str, **counts: Any) -> Probe:
        return Probe(arm=arm, norm=ARMS[arm].norm, residual=True, init=gpt2, **counts)

    assert [probe for probe in place.probes if probe.residual] == [
        probe(ln, depth=2, seeds=[1, 2], trained=[1, 2]),  # in both
        probe(ln, depth=3, seeds=[1, 2], trained=[]),  # at the start alone
        probe("batchnorm", depth=2, seeds=[], trained=[1, 2]),  # trained alone
    ]
    assert {probe.depth for probe in place.probes if not probe.residual} == {2, 3}
    assert [p.init for p in places["none"].probes] == ["gpt2", "xavier"]


def test_the_unscaled_start_is_probed_and_not_trained():
    assert depth_grid(start__0__init=["gpt2_flat"]).probes()["pre"].probes[0].init == "gpt2_flat"
    with pytest.raises(ValidationError, match="gpt2_flat is probed at the start alone"):
        depth_grid(trained__0__init=["gpt2_flat"])


def test_without_trained_shapes_there_are_places_alone():
    grid = depth_grid(trained=[], kept={"learning_rate": 1.0, "warmup_steps": 99})
    assert grid.trainings() == {}
    assert grid.trained_shapes() == []
    assert all(not p.trained for place in grid.probes().values() for p in place.probes)


def test_seeds_of_two_blocks_are_those_of_their_own_shapes():
    more = GRID["trained"][0] | {"depths": [3], "seeds": [7], "arms": ["rmsnorm"]}
    place = depth_grid(trained=[GRID["trained"][0], more]).probes()["pre"]
    assert [(p.arm, p.depth, p.trained) for p in place.probes if p.trained][1:] == [
        ("batchnorm", 2, [1, 2]),
        ("rmsnorm", 3, [7]),
    ]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"start__0__arms": ["layernorm", "none"]}, "depth.start.0: arm none with placement p"),
        ({"trained__0__placements": ["pre", "none"]}, "depth.trained.0: arm layernorm .* none"),
        ({"kept__learning_rate": 0.1}, "depth: trained: .*0.1 with 2 steps"),
        ({"kept__warmup_steps": 1}, "depth: trained: .*0.003 with 1 steps"),
        ({"start__1": GRID["start"][0]}, "depth: start: .*twice: layernorm-post-plain-gpt2-2"),
        ({"trained": GRID["trained"] * 2}, "depth: trained: .*twice: batchnorm-pre-residual-gpt2"),
        ({"trained__0__warmup_steps": [2, 2]}, "depth.trained.0.warmup_steps: .*twice: 2"),
        ({"trained__0__learning_rates": []}, "depth.trained.0.learning_rates: "),
        ({"trained__0__learning_rates": [0.0030000000001]}, "learning_rates.0: .*0.003:"),
        ({"start__0__arms": ["layrnorm"]}, "depth.start.0.arms.0: .*nearest: layernorm"),
        ({"start__0__init": ["he"]}, "depth.start.0.init.0: "),
        ({"training__precision": "bf16"}, "fp32"),
        ({"windows": 0}, "depth.windows: "),
        ({"sizes__width": 4}, "depth.sizes.width: "),
        # from within a recipe, said as it is
        ({"trained__0__warmup_steps": [0, 2, 6]}, r"depth: trained: warmup_steps \(6\)"),
        ({"training__eval_tokens": 8}, r"depth: trained: eval_tokens \(8\)"),
        ({"sizes__n_head": 3}, r"depth: sizes: n_embd \(8\)"),
        ({"sizes__n_head": 3, "trained": []}, r"depth: sizes: n_embd \(8\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key_in_one_line(changes, names):
    with pytest.raises(ConfigError) as e:
        load(MAIN | {"depth": raw_grid(**changes)})
    _, line = str(e.value).splitlines()
    assert re.search(names, line)


def test_the_small_grid_loads():
    assert load(MAIN | {"depth": raw_grid()}).depth == depth_grid()


@pytest.mark.parametrize("variant", [None, "tiny", "paper", "pretrained"])
def test_every_configuration_has_recipes_that_survive_the_command_line(variant):
    raw = copy.deepcopy(MAIN)
    if variant:
        update_config(raw, yaml.safe_load((ROOT / "config" / f"{variant}.yaml").read_text()))
    depth = Depth.model_validate(raw["depth"])
    for made in depth.trainings().values():
        again = EnsembleRecipe.model_validate_json(made.model_dump_json())
        assert again.runs() == made.runs()
        assert Schedule(**made.kept.model_dump()) in made.schedules()
    for place in depth.probes().values():
        assert type(place).model_validate_json(place.model_dump_json()) == place
    names = set(depth.trainings())
    assert not names & set(depth.probes())  # both are directories of results/depth


def test_dropout_is_refused():
    made = next(iter(depth_grid().trainings().values())).model_dump()
    made["model"]["dropout"] = 0.1
    with pytest.raises(ValidationError, match="fp32, without dropout"):
        EnsembleRecipe.model_validate(made)
