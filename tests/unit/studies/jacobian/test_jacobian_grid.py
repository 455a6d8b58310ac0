"""The Jacobian's configuration: what it trains, under which names, and what is refused."""

import re

import pytest
from jacobian_recipes import GRID, grid
from pydantic import ValidationError

from normscope.nn.arms import ARMS


def test_every_combination_is_trained_and_exact_replaces_nothing():
    trained = grid().trainings()
    assert list(trained) == [
        *(
            f"small_2-{arm}-sigmoid-{feedback}-{backward}-1.0-0.0-{rate}-1"
            for arm in ("layernorm", "rmsnorm_plain")
            for feedback in ("fa", "dfa")
            for backward in ("exact-all", "projected-all", "projected-final")
            for rate in ("0.01", "0.00001")
        ),
        "published-manual_l2-softmax-backprop-exact-all-1.0-0.0-0.01-7",
    ]
    *first, last = trained.values()
    assert {tuple(job.seeds) for job in first} == {(1, 2)}
    assert last.seeds == [7]


def test_a_dose_is_of_center_scale_and_compared_with_an_exact_twin_of_its_penalty():
    run = {**GRID["runs"][1], "protocol": "small_2", "arms": ["layernorm"]}
    run |= {"radial_shares": [0.25, 1.0], "sigma_penalties": [0.0, 0.1]}
    both = grid(runs=[{**run, "norm_backward": ["exact", "center_scale"]}])
    cell = "small_2-layernorm-softmax-backprop"
    assert list(both.trainings()) == [
        f"{cell}-{kind}-{penalty}-0.01-7"
        for kind in ("exact-all-1.0", "center_scale-all-0.25", "center_scale-all-1.0")
        for penalty in ("0.0", "0.1")
    ]
    held = both.trainings()[f"{cell}-center_scale-all-0.25-0.1-0.01-7"].model
    assert (held.radial_share, held.sigma_penalty) == (0.25, 0.1)
    assert list(both.probes()) == [f"{cell}-exact-all-1.0-0.0-0.01-7"]
    exact = {**run, "norm_backward": ["exact"], "sigma_penalties": [0.0]}
    dose = {**run, "norm_backward": ["center_scale"], "sigma_penalties": [0.1]}
    with pytest.raises(ValidationError, match=r"no run to compare .*-0\.25-0\.1-"):
        grid(runs=[exact, dose])


def test_a_job_has_the_choices_of_its_cell_and_the_rest_of_its_protocol():
    run = grid().trainings()["small_2-rmsnorm_plain-sigmoid-dfa-projected-final-1.0-0.0-0.00001-1"]
    protocol = grid().protocols["small_2"]
    assert (run.norm, run.placement) == (ARMS["rmsnorm_plain"].norm, "pre")
    assert run.model.model_dump() == protocol.model.model_dump() | {
        "attention": "sigmoid",
        "feedback": "dfa",
        "norm_backward": "projected",
        "surrogates_in": "final",
    }
    assert run.training.model_dump() == protocol.training.model_dump() | {
        "learning_rate": 1e-5,
        "min_lr": pytest.approx(0.1e-5, rel=1e-15),
    }


EXACT = {**GRID["runs"][0], "norm_backward": ["exact"], "seeds": [1]}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        *(
            ({key: "smal"}, f"{key}: .*smal.*published, small_2")
            for key in ("published", "corrected", "runs.1.protocol")
        ),
        ({"protocols.small_2.model.attention": "sigmoid"}, "protocols.small_2.model: .*attention"),
        (  # a block that trains nothing
            {"runs.0.norm_backward": ["exact"], "runs.0.surrogates_in": ["blocks"]},
            "runs.0: .*surrogates_in",
        ),
        (  # a surrogate without its exact twin, and with one of another seed
            {"runs.0.norm_backward": ["projected"]},
            r"small_2-\S+-projected-\w+-1.0-0.0-[0-9.]+-([12]) .*exact, seed \1",
        ),
        (
            {"runs": [EXACT, {**EXACT, "norm_backward": ["projected"], "seeds": [1, 3]}]},
            "exact, seed 3",
        ),
        *(
            ({"runs.0.arms": [arm]}, f"arm {arm}.*norm_backward projected")
            for arm in ("manual_l2", "batchnorm", "dyt")
        ),
        ({"protocols.small_2.model.tied_head": True}, "tied_head: false"),
        ({"runs.1.arms": ["none"]}, "arm none"),
        ({"runs.0.radial_shares": [0.5]}, "runs.0: .*a share below 1"),
        ({"runs.0.feedback": ["fa", "dfa", "fa"]}, "runs.0.feedback: .*twice: fa"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(changes, names):
    with pytest.raises(ValidationError) as e:
        grid(**changes)
    (error,) = e.value.errors()
    assert re.search(names, f"{'.'.join(map(str, error['loc']))}: {error['msg']}")
