"""What all studies share: the seeds of a cell in jobs, and recipes that a command line carries."""

import copy
import re
from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from snakemake.utils import update_config

from normscope.config import Config, load
from normscope.studies.study import blocks

MAIN = yaml.safe_load((ROOT / "config.yaml").read_text())


def test_seeds_go_to_jobs_in_the_order_of_the_configuration():
    models = [("a", 5), ("b", 1), ("a", 2), ("a", 9), ("a", 7), ("a", 8)]
    assert list(blocks(models, 2).items()) == [
        ("a-5", ("a", [5, 2])),
        ("a-9", ("a", [9, 7])),
        ("a-8", ("a", [8])),
        ("b-1", ("b", [1])),
    ]
    # the order is theirs: another one has other jobs
    assert blocks([("a", 2), ("a", 5)], 2) == {"a-2": ("a", [2, 5])}
    assert blocks([("a", 2), ("a", 5)], 1).keys() == {"a-2", "a-5"}
    assert blocks([], 3) == {}


@given(st.lists(st.integers(0, 99), min_size=1, unique=True), st.integers(1, 5))
def test_a_seed_more_leaves_full_jobs_as_they_are(seeds: Sequence[int], size: int):
    before = blocks([("a", seed) for seed in seeds], size)
    after = blocks([("a", seed) for seed in [*seeds, 100]], size)
    assert [seed for _, listed in before.values() for seed in listed] == list(seeds)
    full = {name: job for name, job in before.items() if len(job[1]) == size}
    assert full.items() <= after.items()
    if len(seeds) % size == 0:  # it has a job of its own
        assert after == before | {"a-100": ("a", [100])}
    else:  # the last job takes it, under the same name
        assert after.keys() == before.keys()


def changed(*path: str | int, seeds: Sequence[int]) -> Config:
    """config.yaml with other seeds in one of its grids."""
    raw = yaml.safe_load(yaml.safe_dump(MAIN))
    node = raw
    for part in path:
        node = node[part]
    node["seeds"] = list(seeds)
    return load(raw)


@pytest.mark.parametrize(
    ("study", "grid", "cells"),
    [  # of config.yaml: its cells by hand
        ("main", ("runs", 0), ["nanogpt-layernorm-pre-0.001", "nanogpt-layernorm-pre-0.003"]),
        (
            "recall",
            ("recall", "runs", 1),
            [f"copy_small-manual_l2-{rate}" for rate in (0.003, 0.01, 0.03)],
        ),
        (
            "jacobian",
            ("jacobian", "runs", 0),
            [
                f"published-layernorm-{attention}-fa-exact-all-1.0-0.0-0.001"
                for attention in ("softmax", "sigmoid")
            ],
        ),
        (
            "depth",
            ("depth", "trained", 0),
            [
                f"layernorm-{placement}-residual-gpt2-12-{rate}-{warm_up}"
                for placement in ("pre", "post")
                for rate in ("0.001", "0.005")
                for warm_up in (0, 200)
            ],
        ),
    ],
)
def test_a_seed_beyond_full_jobs_is_one_job_of_each_of_its_cells(study, grid, cells):
    """Whose own is the first of its name; no other job, of this study or another, is another."""
    stack = load(MAIN).studies[study].stack  # pyright: ignore[reportAttributeAccessIssue]
    first = changed(*grid, seeds=range(1, stack + 1))
    more = changed(*grid, seeds=range(1, stack + 2))
    for name in first.studies:
        before, after = first.studies[name].trainings(), more.studies[name].trainings()
        new = {f"{cell}-{stack + 1}" for cell in cells} if name == study else set()
        assert after.keys() - before.keys() == new
        assert before == {job: recipe for job, recipe in after.items() if job not in new}
        assert all(after[job].model_dump()["seeds"] == [stack + 1] for job in new)
        probes = more.studies[name].probes().keys() - first.studies[name].probes().keys()
        # whose probes are placements, and tasks
        assert probes == (set() if name in ("depth", "recall") else new)


def variants() -> dict[str, Config]:
    """The project's config.yaml alone, and with each file of config/ laid over it."""
    loaded = {"project": load(MAIN)}
    for path in sorted((ROOT / "config").glob("*.yaml")):
        raw = copy.deepcopy(MAIN)
        update_config(raw, yaml.safe_load(path.read_text()))
        loaded[path.stem] = load(raw)
    return loaded


VARIANTS = variants()


@pytest.mark.parametrize("name", VARIANTS)
def test_every_recipe_survives_the_command_line(name):
    """As scripts read it; and a job's name is one of a file."""
    config = VARIANTS[name]
    for study in config.studies.values():
        trainings, probes = study.trainings(), study.probes()
        tables = study.tabulation(config.settings)
        for recipe in (*trainings.values(), *probes.values(), tables):
            assert type(recipe).model_validate_json(recipe.model_dump_json()) == recipe
        for job in (*trainings, *probes):
            assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", job)  # Snakefile, wildcard name
