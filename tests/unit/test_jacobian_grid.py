"""The Jacobian's configuration: what it trains, under which names, and what is refused."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from snakemake.utils import update_config

from normscope.config import load
from normscope.nn.arms import ARMS
from normscope.studies.jacobian.grid import Cell, Jacobian, cell_key
from normscope.train.recipe import Run

ROOT = Path(__file__).parents[2]
PROTOCOL = {
    "placement": "pre",
    "model": {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 8, "tied_head": False},
    "training": {
        "steps": 9,
        "batch_size": 2,
        "learning_rate": 0.01,
        "min_lr": 0.002,
        "warmup_steps": 0,
        "weight_decay": 0.0,
        "eval_every": 9,
        "loss_bound": 20.0,
        "precision": "fp32",
    },
}
GRID = {
    "protocols": {
        "published": {**PROTOCOL, "placement": "peri"},
        "small_2": PROTOCOL,
        "without": {**PROTOCOL, "placement": "none"},
    },
    "published": "published",
    "corrected": "small_2",
    "runs": [
        {
            "protocol": "small_2",
            "arms": ["layernorm", "rmsnorm_plain"],
            "attention": ["sigmoid"],
            "feedback": ["fa", "dfa"],
            "norm_backward": ["exact", "projected"],
            "surrogates_in": ["all", "final"],
            "learning_rates": [0.01, 1e-5],
            "seeds": [1, 2],
        },
        {
            "protocol": "published",
            "arms": ["manual_l2"],
            "attention": ["softmax"],
            "feedback": ["backprop"],
            "norm_backward": ["exact"],
            "learning_rates": [0.01],
            "seeds": [7],
        },
    ],
    "windows": 3,
}


def grid(**changes: Any) -> Jacobian:
    """The grid with values set at dotted keys."""
    raw = json.loads(json.dumps(GRID))
    for key, value in changes.items():
        *path, last = (int(part) if part.isdigit() else part for part in key.split("."))
        node: Any = raw
        for part in path:
            node = node[part]
        node[last] = value
    return Jacobian.model_validate(raw, strict=True)


def problem(**changes: Any) -> str:
    with pytest.raises(ValidationError) as e:
        grid(**changes)
    (error,) = e.value.errors()
    return f"{'.'.join(map(str, error['loc']))}: {error['msg'].removeprefix('Value error, ')}"


def variants() -> dict[str, dict]:
    """config.yaml alone, and with each file of config/ laid over it."""
    main = yaml.safe_load((ROOT / "config.yaml").read_text())
    configs = {"config": main}
    for path in sorted((ROOT / "config").glob("*.yaml")):
        configs[path.stem] = copy.deepcopy(main)
        update_config(configs[path.stem], yaml.safe_load(path.read_text()))
    return configs


VARIANTS = variants()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_projects_configurations_train_every_cell_also_after_json(name):
    jacobian = load(VARIANTS[name]).jacobian
    again = Jacobian.model_validate_json(jacobian.model_dump_json())
    assert again == jacobian
    trained = jacobian.trained()
    assert again.trained() == trained
    runs = [f"{cell}-{seed}" for cell, seeds in jacobian.cells().items() for seed in seeds]
    assert runs == list(dict.fromkeys(runs))
    assert sorted(runs) == sorted(trained)
    assert {jacobian.published, jacobian.corrected} <= {name.split("-")[0] for name in runs}


def test_every_combination_is_trained_and_exact_replaces_nothing():
    names = list(grid().trained())
    assert names == [
        *(
            f"small_2-{arm}-sigmoid-{feedback}-{backward}-{rate}-{seed}"
            for arm in ("layernorm", "rmsnorm_plain")
            for feedback in ("fa", "dfa")
            for backward in ("exact-all", "projected-all", "projected-final")
            for rate in ("0.01", "0.00001")
            for seed in (1, 2)
        ),
        "published-manual_l2-softmax-backprop-exact-all-0.01-7",
    ]


def test_a_cell_has_the_seeds_of_every_block():
    more = {**GRID["runs"][0], "seeds": [5], "feedback": ["fa"]}
    cells = grid(runs=[*GRID["runs"], more]).cells()
    assert cells["small_2-layernorm-sigmoid-fa-projected-final-0.01"] == [1, 2, 5]
    assert cells["small_2-layernorm-sigmoid-dfa-projected-final-0.01"] == [1, 2]


def test_exact_cells_are_those_of_the_exact_backward_pass():
    cells = grid().cells(exact=True)
    assert {cell_key(cell)["norm_backward"] for cell in cells} == {"exact"}
    assert len(cells) == 2 * 2 * 2 + 1
    assert all(grid().cells()[cell] == seeds for cell, seeds in cells.items())


@given(
    arm=st.sampled_from(list(ARMS)),
    backward=st.sampled_from(["exact", "center_scale", "projected", "straight_through"]),
    places=st.sampled_from(["all", "blocks", "final"]),
    rate=st.floats(1e-12, 1e6, exclude_min=True),
)
def test_a_name_gives_its_cell_back(arm, backward, places, rate):
    cell = Cell("small_2", arm, "softmax", "dfa", backward, places, rate)
    assert re.fullmatch(r"([a-z0-9_]+-){6}[0-9.]+", str(cell))
    assert cell_key(str(cell)) == cell._asdict()


def test_a_run_has_the_choices_of_its_cell_and_the_rest_of_its_protocol():
    run = grid().trained()["small_2-rmsnorm_plain-sigmoid-dfa-projected-final-0.00001-2"]
    protocol = grid().protocols["small_2"]
    assert (run.norm, run.placement, run.seed) == (ARMS["rmsnorm_plain"].norm, "pre", 2)
    assert run.model.model_dump() == protocol.model.model_dump() | {
        "attention": "sigmoid",
        "feedback": "dfa",
        "norm_backward": "projected",
        "surrogates_in": "final",
    }
    assert run.training.model_dump() == protocol.training.model_dump() | {
        "learning_rate": 1e-5,
        "min_lr": pytest.approx(0.2e-5, rel=1e-15),
    }
    for name in ("rmsnorm", "small_2"):
        assert name not in run.model_dump_json()


def test_the_protocols_own_rate_has_its_own_end():
    run = grid().trained()["small_2-layernorm-sigmoid-fa-exact-all-0.01-1"]
    assert run.training == grid().protocols["small_2"].training


@given(
    peak=st.floats(1e-8, 10).map(lambda rate: float(f"{rate:.2g}")),
    rate=st.floats(1e-5, 1).map(lambda rate: float(f"{rate:.2g}")),
)
def test_a_constant_rate_stays_constant_at_every_peak(peak, rate):
    changes = {"runs.1.learning_rates": [peak], "runs.1.protocol": "small_2"}
    for key in ("learning_rate", "min_lr"):
        changes[f"protocols.small_2.training.{key}"] = rate
    *_, run = grid(**changes).trained().values()
    assert Run.model_validate_json(run.model_dump_json()) == run  # as scripts/train.py reads it
    assert (run.training.learning_rate, run.training.min_lr) == (peak, peak)


@pytest.mark.parametrize("key", ["published", "corrected", "runs.0.protocol", "runs.1.protocol"])
def test_an_unknown_protocol_is_named_with_the_known_ones(key):
    message = problem(**{key: "smal"})
    assert message == f": {key}: unknown protocol 'smal'; known: published, small_2, without"


def test_a_block_that_trains_nothing_is_refused_with_the_way_out():
    message = problem(**{"runs.0.norm_backward": ["exact"], "runs.0.surrogates_in": ["blocks"]})
    assert message == "runs.0: norm_backward exact replaces nothing: give surrogates_in all"


@pytest.mark.parametrize("name", ["Small", "a-b", "a b", "", "a.b", "a/b"])
def test_a_protocol_whose_name_is_no_part_of_a_file_name_is_refused(name):
    message = problem(protocols={**GRID["protocols"], name: PROTOCOL})
    assert "should match pattern" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention", "sigmoid"),
        ("feedback", "fa"),
        ("norm_backward", "projected"),
        ("surrogates_in", "final"),
    ],
)
def test_what_the_runs_set_is_refused_in_a_protocol(key, value):
    message = problem(**{f"protocols.small_2.model.{key}": value})
    assert message == f"protocols.small_2.model: {key}: set by jacobian.runs, not by a protocol"


def test_a_surrogate_without_its_exact_twin_is_named_with_the_way_out():
    message = problem(**{"runs.0.norm_backward": ["projected"]})
    assert re.fullmatch(
        r": no run to compare small_2-\S+-sigmoid-d?fa-projected-\w+-[0-9.]+-([12]) with: "
        r"add norm_backward exact, seed \1",
        message,
    )


def test_an_exact_twin_of_another_seed_is_no_twin():
    exact = {**GRID["runs"][0], "norm_backward": ["exact"], "seeds": [1]}
    surrogate = {**exact, "norm_backward": ["projected"], "seeds": [1, 3]}
    assert grid(**{"runs.0": exact, "runs.1": {**surrogate, "seeds": [1]}})
    message = problem(**{"runs.0": exact, "runs.1": surrogate})
    assert message.endswith("add norm_backward exact, seed 3")


@pytest.mark.parametrize("arm", ["manual_l2", "scalenorm", "batchnorm", "dyt"])
def test_a_surrogate_of_an_arm_without_surrogates_is_refused(arm):
    message = problem(**{"runs.0.arms": [arm]})
    assert message == (f": arm {arm}: norm_backward projected is defined for LayerNorm and RMSNorm")


@pytest.mark.parametrize("feedback", ["fa", "dfa"])
def test_feedback_with_a_tied_head_is_refused_with_the_way_out(feedback):
    changes = {"protocols.small_2.model.tied_head": True, "runs.0.feedback": [feedback]}
    message = problem(**changes)
    assert message == f": protocols.small_2.model.tied_head: feedback {feedback} needs false"
    assert grid(**{**changes, "runs.0.feedback": ["backprop"]})


@pytest.mark.parametrize(("arm", "protocol"), [("none", "published"), ("layernorm", "without")])
def test_an_identity_goes_with_placement_none_and_a_norm_does_not(arm, protocol):
    changes = {"runs.1.arms": [arm], "runs.1.protocol": protocol}
    message = problem(**changes)
    assert f"arm {arm} does not go with protocol {protocol}, whose placement is " in message
    assert grid(**{"runs.1.arms": ["none"], "runs.1.protocol": "without"})


def test_a_run_of_two_blocks_is_named():
    again = {**GRID["runs"][1], "seeds": [6, 7]}
    message = problem(runs=[*GRID["runs"], again])
    assert message == ": given twice: published-manual_l2-softmax-backprop-exact-all-0.01-7"


@pytest.mark.parametrize("rates", [[0.001], [0.01, 0.1]])
def test_another_rate_of_the_published_protocol_is_refused_with_the_way_out(rates):
    message = problem(**{"runs.1.learning_rates": rates})
    assert message == (
        ": published: protocol 'published' is trained at its own learning rate, 0.01; give other "
        "rates to another protocol"
    )
    assert grid(**{"runs.1.learning_rates": rates, "runs.1.protocol": "small_2"})


def test_the_published_protocol_is_the_one_that_is_named():
    assert "protocol 'small_2' is trained at its own" in problem(published="small_2")
    other = {"runs.1.learning_rates": [0.25], "runs.0.learning_rates": [0.01]}
    assert grid(published="small_2", **other)


def test_rates_with_other_seeds_are_refused_with_both_cells():
    one = {**GRID["runs"][1], "protocol": "small_2"}
    more = {**one, "learning_rates": [0.25]}
    message = problem(runs=[*GRID["runs"], one, {**more, "seeds": [7, 99]}])
    cells = (f"small_2-manual_l2-softmax-backprop-exact-all-{rate}" for rate in ("0.01", "0.25"))
    assert message == f": {' and '.join(cells)} have other seeds: give every learning rate the same"
    assert grid(runs=[*GRID["runs"], one, {**more, "seeds": [7]}])


@pytest.mark.parametrize(
    ("key", "value", "twice"),
    [
        ("arms", ["layernorm", "layernorm"], "layernorm"),
        ("attention", ["sigmoid", "sigmoid"], "sigmoid"),
        ("feedback", ["fa", "dfa", "fa"], "fa"),
        ("norm_backward", ["exact", "exact"], "exact"),
        ("surrogates_in", ["all", "all"], "all"),
        ("learning_rates", [0.01, 0.010], "0.01"),
        ("seeds", [1, 2, 2], "2"),
    ],
)
def test_a_value_given_twice_is_named(key, value, twice):
    assert problem(**{f"runs.0.{key}": value}) == f"runs.0.{key}: given twice: {twice}"


@pytest.mark.parametrize(
    "key", ["arms", "attention", "feedback", "norm_backward", "surrogates_in", "seeds"]
)
def test_an_empty_list_is_refused(key):
    assert "at least 1 item" in problem(**{f"runs.0.{key}": []})


def test_a_rate_that_tables_do_not_keep_is_refused_with_what_they_keep():
    message = problem(**{"runs.0.learning_rates": [0.1234567891]})
    assert message.startswith("runs.0.learning_rates.0: tables keep 9 digits, in which ")
    assert message.endswith("0.1234567891 is 0.123456789: give that")
