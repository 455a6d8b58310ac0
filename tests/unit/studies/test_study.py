"""What all studies share: the seeds of a cell in jobs, and recipes on a command line."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from recipes import changed
from recipes import recipe as stack_recipe

from normscope.config import load
from normscope.nn.arms import ARMS
from normscope.pilot import read_project
from normscope.studies.study import blocks
from normscope.train.recipe import flops

MAIN = read_project(ROOT)


def test_seeds_share_a_job_by_their_numbers():
    models = [("a", 8), ("b", 101), ("a", 2), ("a", 0), ("a", 7), ("b", 100), ("a", 1), ("a", 4)]
    assert list(blocks(models, 3).items()) == [
        ("a-0", ("a", [0])),
        ("a-1", ("a", [1, 2])),
        ("a-4", ("a", [4])),
        ("a-7", ("a", [7, 8])),
        ("b-100", ("b", [100])),
        ("b-101", ("b", [101])),
    ]
    assert blocks([], 3) == {}


@given(
    st.lists(st.integers(0, 300), min_size=1, unique=True), st.integers(1, 12), st.integers(0, 300)
)
def test_one_more_seed_is_the_work_of_one_job_wherever_it_stands(
    seeds: Sequence[int], size: int, new: int
):
    before = blocks([("a", seed) for seed in seeds if seed != new], size)
    for place in (0, len(seeds) // 2, len(seeds)):
        listed = [seed for seed in seeds if seed != new]
        listed.insert(place, new)
        after = blocks([("a", seed) for seed in listed], size)
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
    stacked = ("main", "recall", "jacobian", "depth", "literature")
    alone = {name: MAIN[name] | {"stack": 1} for name in stacked}
    both = (load(MAIN), load(MAIN | alone))
    for before, after in zip(*(config.studies.values() for config in both), strict=True):
        works = [sum(size.flops for size in p.training_sizes().values()) for p in (before, after)]
        assert works[0] == pytest.approx(works[1])


@pytest.mark.parametrize(
    ("study", "grid", "cells"),
    [  # the number of cells in a block of config.yaml
        ("main", "main.runs.0", 1),
        ("recall", "recall.runs.6", 1),
        ("jacobian", "jacobian.runs.0", 2),
        ("depth", "depth.trained.0", 8),
        ("literature", "literature.runs.0", 1),
    ],
)
def test_a_seed_beyond_full_jobs_is_one_job_of_each_of_its_cells(study, grid, cells):
    """No other job changes, of this study or of another."""
    stack = load(MAIN).studies[study].stack  # pyright: ignore[reportAttributeAccessIssue]
    seeds = list(range(1, stack + 2))
    first = load(changed(MAIN, ".", {f"{grid}.seeds": seeds[:-1]}))
    more = load(changed(MAIN, ".", {f"{grid}.seeds": seeds}))
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


@pytest.mark.parametrize("name", ["main", "recall", "jacobian", "depth", "literature"])
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
