"""What the configuration trains and probes for the literature; what it refuses."""

import re

import pytest
from literature_recipes import literature_grid, raw_grid
from processes import ROOT

from normscope.config import ConfigError, load
from normscope.nn.arms import ARMS
from normscope.pilot import read_project

MAIN = read_project(ROOT)


def test_every_job_of_models_has_a_probe_and_all_untrained_networks_have_one():
    grid = literature_grid()
    probes = grid.probes()
    assert list(probes) == [*grid.trainings(), "starts"]
    assert [grid.probed(name) for name in probes] == [*([name] for name in grid.trainings()), []]
    starts = probes["starts"].starts
    assert starts is not None
    assert starts.norms == {"layernorm": ARMS["layernorm"].norm}
    assert list(starts.towers) == ["none", "rmsnorm"]
    assert starts.untrained.model(4).n_layer == 4
    assert {name for name, probe in probes.items() if probe.starts} == {"starts"}


def test_models_with_layernorm_or_rmsnorm_in_pre_norm_are_refined_in_the_named_protocols():
    more = {"protocol": "small", "arms": ["dyt", "batchnorm"], "placements": ["pre"]}
    runs = [*raw_grid()["runs"], more | {"learning_rates": [0.01], "seeds": [2]}]
    steps = {name: probe.refined for name, probe in literature_grid(runs=runs).probes().items()}
    refined = {name for name, number in steps.items() if number == 3}
    assert refined == {
        f"small-{arm}-pre-0.01-{seed}" for arm in ("layernorm", "rmsnorm") for seed in (9, 11)
    }
    assert {steps[name] for name in steps.keys() - refined} == {0}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"runs__1__protocol": "qkk"}, "literature: runs.1.protocol: unknown .*known: small, qk$"),
        ({"refined__protocols": ["smal"]}, "literature: refined.protocols: unknown .*'smal'"),
        ({"runs__0__placements": ["none"]}, "literature.runs.0: arm layernorm .* none"),
        ({"untrained__arms": ["none"]}, "literature.untrained: arm none with placement pre"),
        ({"untrained__depths": [4]}, "literature.untrained: depths: slopes .* need at least two"),
        ({"untrained__n_head": 3}, r"literature: untrained: n_embd \(8\) must be a multiple"),
        ({"protocols__qk__model__final_norm": False, "runs__1__placements": ["post"]},
         "literature: arm layernorm, protocol qk: placement post has no final norm"),
        ({"protocols__small__training__train_tokens": 8},
         r"literature: arm layernorm, protocol small: train_tokens \(8\) must exceed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_its_key_in_one_line(changes, names):
    with pytest.raises(ConfigError) as e:
        load(MAIN | {"literature": raw_grid(**changes)})
    _, line = str(e.value).splitlines()
    assert re.search(names, line)
