"""The registry: its rows cross the factors, and each learns what its method says."""

import math

import pytest
import torch

from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)

# what the words of a token norm's name say: center, radius, and whether what it learns of size is
# learned by its logarithm, then gain and bias
BASES = {
    "layernorm": (True, "sqrt(d)", False),
    "rmsnorm": (False, "sqrt(d)", False),
    "manual_l2": (False, "1", True),
    "manual_l2_scaled": (False, "learned", True),
    "centered_l2": (True, "1", True),
    "scalenorm": (False, "learned", False),
    "centered_scalenorm": (True, "learned", False),
}
ENDS = {
    "plain": (False, False),
    "gain": (True, False),
    "bias": (False, True),
    "affine": (True, True),
}
BARE = {"layernorm": (True, True), "rmsnorm": (True, False)}  # the others alone learn neither


def test_every_crossing_of_the_token_factors_is_one_arm_by_its_name():
    crossed = set()
    arms = {name: arm for name, arm in ARMS.items() if not arm.norm.logit_scale}
    for name, arm in arms.items():
        base, _, end = name.rpartition("_")
        base, affine = (base, ENDS[end]) if end in ENDS else (name, BARE.get(name, (False, False)))
        if arm.norm.statistic == "token":
            norm = arm.norm
            center, radius, by_log = BASES[base]
            said = (center, radius, *affine)
            assert (norm.center, norm.radius, norm.gain, norm.bias) == said, name
            assert (norm.log_rate is not None) == (by_log and (norm.gain or radius == "learned"))
            crossed.add((*said, norm.log_rate))
    assert len(crossed) == sum(arm.norm.statistic == "token" for arm in arms.values()) == 25


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
    said = {name for name, present in (("gain", gain), ("bias", bias)) if present}
    identity = factors == {"statistic": "none"}
    if (factors["statistic"] == "batch" and gain != bias) or (identity and said):
        with pytest.raises(ValueError, match="gain and"):
            Norm(**factors, gain=gain, bias=bias)
        return
    layer = build(Norm(**factors, gain=gain, bias=bias), D)
    learned = {name.replace("weight", "gain") for name, _ in layer.named_parameters()}
    assert learned == said | others


@ALL
def test_starts_at_unit_gain_and_zero_bias(arm):
    starts = {"g": math.sqrt(D), "gain": 1, "weight": 1, "bias": 0, "shift": 0}
    starts["alpha"] = 1 if arm.endswith("_scaled") else 0.5
    if ARMS[arm].norm.log_rate:  # logarithms of 1
        starts |= {"g": 0, "gain": 0}
    for name, p in build(ARMS[arm].norm, D).named_parameters():
        torch.testing.assert_close(p.detach(), torch.full_like(p, starts[name]))


def test_every_arm_has_a_source_and_a_label_of_its_own():
    assert all(arm.source for arm in ARMS.values())
    assert len({arm.label for arm in ARMS.values()}) == len(ARMS)


@pytest.mark.parametrize(
    "factors", [{"gain": True}, {"radius": "1"}, {"statistic": "none"}, {"center": True}]
)
def test_only_a_gain_at_radius_1_and_a_learned_radius_have_a_log_rate(factors):
    with pytest.raises(ValueError, match="log_rate"):
        Norm(**factors, log_rate=2.0)


@pytest.mark.parametrize("arm", ["manual_l2_affine", "manual_l2_scaled"])
def test_a_size_that_is_learned_by_its_logarithm_has_room_to_become_sqrt_d(arm):
    """Adam's first steps are as long as its rate; ln sqrt(128) is 24 steps of ten times 0.01."""
    layer, d = build(ARMS[arm].norm, 128), 128
    (p,) = (p for name, p in layer.named_parameters() if name in ("gain", "g"))
    x = torch.randn(3, d, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x).norm(dim=-1), torch.ones(3))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    steps = 0
    while float(layer(x).detach().norm(dim=-1).mean()) < math.sqrt(d):
        optimizer.zero_grad()
        p.grad = -torch.ones_like(p)
        optimizer.step()
        steps += 1
    assert steps == math.ceil(math.log(math.sqrt(d)) / 0.1 - 1e-3)
