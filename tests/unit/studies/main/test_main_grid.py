"""What the configuration of the main study trains and probes; what it refuses."""

import re

import pytest
from main_recipes import GRID, SIZES, TRAINING, main_grid, raw_grid
from processes import ROOT

from normscope.config import ConfigError, load
from normscope.nn.arms import ARMS
from normscope.pilot import read_project

MAIN = read_project(ROOT)


def test_every_job_of_models_has_a_probe_and_all_untrained_networks_have_one():
    grid = main_grid()
    probes = grid.probes()
    assert list(probes) == [*grid.trainings(), "starts"]
    assert [grid.jobs_of_probe(name) for name in probes] == [
        *([name] for name in grid.trainings()),
        [],
    ]
    starts = probes["starts"].starts
    assert starts is not None
    assert starts.norms == {"layernorm": ARMS["layernorm"].norm}
    assert list(starts.towers) == ["none", "rmsnorm"]
    assert starts.model(4).n_layer == 4
    assert {name for name, probe in probes.items() if probe.starts} == {"starts"}
    assert [(probe.stream, probe.inside) for probe in probes.values()] == [
        (2, 0), *[(0, 2)] * (len(probes) - 2), (0, 0)
    ]  # fmt: skip


def test_protocols_of_one_batch_size_are_no_comparison_of_batch_sizes():
    twin, other = GRID["protocols"]["brief"], TRAINING | {"eval_every": 2, "batch_size": 5}
    assert main_grid(protocols__twin=twin).batch_sizes == []
    size = TRAINING["batch_size"]
    grid = main_grid(protocols__twin=twin, protocols__other={"model": SIZES, "training": other})
    assert grid.batch_sizes == [{"brief": size, "twin": size, "other": 5}]


def test_models_with_layernorm_or_rmsnorm_in_pre_norm_are_refined_in_the_named_protocols():
    more = {"protocol": "brief", "arms": ["dyt", "batchnorm"], "placements": ["pre"]}
    runs = [*raw_grid()["runs"], more | {"learning_rates": [0.01], "seeds": [2]}]
    steps = {name: probe.refined for name, probe in main_grid(runs=runs).probes().items()}
    refined = {name for name, number in steps.items() if number == 3}
    assert refined == {
        f"brief-{arm}-pre-0.01-{seed}" for arm in ("layernorm", "rmsnorm") for seed in (9, 11)
    }
    assert {steps[name] for name in steps.keys() - refined} == {0}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"runs__2__protocol": "qkk"}, "main: runs.2.protocol: unknown .*, qk$"),
        ({"refined__protocols": ["nanogpt"]}, "main: refined.protocols.0: unknown .*'nanogpt'"),
        ({"refined__protocols": ["brie"]}, "main: refined.protocols.0: unknown .*'brie'"),
        ({"runs__1__placements": ["none"]}, "main.runs.1: arm layernorm .* none"),
        ({"untrained__arms": ["none"]}, "main.untrained: arm none with placement pre"),
        ({"untrained__depths": [4]}, "main.untrained: depths: slopes .* need at least two"),
        ({"untrained__n_head": 3}, r"main: untrained: n_embd \(8\) must be a multiple"),
        ({"protocols__qk__model__final_norm": False, "runs__2__placements": ["post"]},
         "main: arm layernorm, protocol qk: placement post has no final norm"),
        ({"protocols__brief__training__train_tokens": 8},
         r"main: arm layernorm, protocol brief: train_tokens \(8\) must exceed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_its_key_in_one_line(changes, names):
    with pytest.raises(ConfigError) as e:
        load(MAIN | {"main": raw_grid(**changes)})
    _, line = str(e.value).splitlines()
    assert re.search(names, line)
