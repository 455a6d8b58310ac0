"""The registry: its rows cross the factors, and each learns what its method says."""

import math

import pytest
import torch

from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)
TOKEN_ARMS = [name for name, arm in ARMS.items() if arm.norm.statistic == "token"]

AFFINE = {"gain", "bias"}
LEARNED: dict[str, set[str]] = {
    "layernorm": AFFINE,
    "layernorm_gain": {"gain"},
    "layernorm_bias": {"bias"},
    "layernorm_plain": set(),
    "rmsnorm": {"gain"},
    "rmsnorm_affine": AFFINE,
    "rmsnorm_bias": {"bias"},
    "rmsnorm_plain": set(),
    "manual_l2": set(),
    "manual_l2_gain": {"gain"},
    "manual_l2_bias": {"bias"},
    "manual_l2_affine": AFFINE,
    "centered_l2": set(),
    "centered_l2_gain": {"gain"},
    "centered_l2_bias": {"bias"},
    "centered_l2_affine": AFFINE,
    "scalenorm": {"g"},
    "scalenorm_gain": {"g", "gain"},
    "scalenorm_bias": {"g", "bias"},
    "scalenorm_affine": {"g", *AFFINE},
    "centered_scalenorm": {"g"},
    "centered_scalenorm_gain": {"g", "gain"},
    "centered_scalenorm_bias": {"g", "bias"},
    "centered_scalenorm_affine": {"g", *AFFINE},
    "batchnorm": {"weight", "bias"},
    "batchnorm_plain": set(),
    "dyt": {"alpha", *AFFINE},
    "derf": {"alpha", "shift", *AFFINE},
    "none": set(),
}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("radius", ["sqrt(d)", "1", "learned"])
@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_every_crossing_of_the_token_factors_is_one_arm(center, radius, gain, bias):
    factors = (center, radius, gain, bias)
    norms = {name: ARMS[name].norm for name in TOKEN_ARMS}
    there = [a for a, n in norms.items() if (n.center, n.radius, n.gain, n.bias) == factors]
    assert len(there) == 1
    assert len(TOKEN_ARMS) == 2 * 3 * 2 * 2


@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("factors", "others"),
    [
        ({"statistic": "token"}, set()),
        ({"statistic": "token", "center": True}, set()),
        ({"statistic": "token", "radius": "1"}, set()),
        ({"statistic": "token", "radius": "learned"}, {"g"}),
        ({"statistic": "token", "center": True, "radius": "1"}, set()),
        ({"statistic": "token", "center": True, "radius": "learned"}, {"g"}),
        ({"statistic": "batch", "center": True}, set()),
        ({"statistic": "none", "elementwise": "tanh"}, {"alpha"}),
        ({"statistic": "none", "elementwise": "erf"}, {"alpha", "shift"}),
        ({"statistic": "none"}, set()),
    ],
)
def test_a_layer_learns_no_more_and_no_less_than_its_factors_say(factors, others, gain, bias):
    said = {name for name, there in (("gain", gain), ("bias", bias)) if there}
    identity = factors == {"statistic": "none"}
    if (factors["statistic"] == "batch" and gain != bias) or (identity and said):
        with pytest.raises(ValueError, match="gain and"):
            Norm(**factors, gain=gain, bias=bias)
        return
    layer = build(Norm(**factors, gain=gain, bias=bias), D)
    learned = {name.replace("weight", "gain") for name, _ in layer.named_parameters()}
    assert learned == said | others


@ALL
def test_learns_what_its_method_learns(arm):
    assert set(dict(build(ARMS[arm].norm, D).named_parameters())) == LEARNED[arm]


@ALL
def test_starts_at_unit_gain_and_zero_bias(arm):
    starts = {"g": math.sqrt(D), "alpha": 0.5, "gain": 1, "weight": 1, "bias": 0, "shift": 0}
    for name, p in build(ARMS[arm].norm, D).named_parameters():
        torch.testing.assert_close(p.detach(), torch.full_like(p, starts[name]))


def test_every_arm_has_a_source_and_a_label_of_its_own():
    assert all(arm.source for arm in ARMS.values())
    assert len({arm.label for arm in ARMS.values()}) == len(ARMS)
