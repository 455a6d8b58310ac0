"""The registry: its rows, what the layers learn, and errors that name a wrong row."""

import math
from typing import Any

import pytest
import torch

from normscope.errors import Explained
from normscope.nn import arms
from normscope.nn.arms import ARMS, Row, registry
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)

# what the name of a token norm says: center, radius, and whether its size is learned by its
# logarithm, then gain and bias
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
BARE = {"layernorm": (True, True), "rmsnorm": (True, False)}  # names without an ending


def test_the_name_of_a_token_norm_says_its_factors():
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
def test_a_layer_learns_exactly_what_its_factors_say(factors, others, gain, bias):
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


def errors(*rows: Row) -> list[str]:
    """What is said of each fault, after the name of the file."""
    with pytest.raises(Explained) as error:
        registry(*rows)
    return [line.partition("arms.py: ")[2] for line in str(error.value).splitlines()]


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        (arms._token(gian=True), "unknown factor 'gian'; did you mean gain?"),
        (arms._batch(center=False), "batch statistics always center"),
        (arms._batch(gain=True), "batch statistics come with gain and bias, or with neither"),
        (arms._pointwise("tanh", radius="1"), "without a statistic there is no center and no"),
        (arms._pointwise("tanh", eps=0.1), "eps has no effect without a statistic"),
        (arms._token(elementwise="erf"), "an elementwise map goes with statistic none"),
        (arms._token(alpha=1.0), "alpha is a factor of elementwise maps only"),
        (arms._token(eps=-1.0), "eps: Input should be greater than 0"),
        ({"statistic": "none"} | {"gain": True}, "an identity has no gain and no bias"),
        *(
            (factors | {"log_rate": 2.0}, "log_rate: ")
            for factors in (arms._token(gain=True), arms._token(radius="1"), {"statistic": "none"})
        ),
    ],
)
def test_wrong_factors_are_refused_with_the_name_of_the_row(factors, reason):
    (line,) = errors(Row("soft", "Soft", "here", factors))
    assert line.startswith(f"'soft': {reason}")


ANY: Any = Row  # values of any type, as a user may write them


@pytest.mark.parametrize(
    ("row", "start"),
    [
        (ANY("a", 3, "here", arms._token()), "'a': label: Input should be a valid string"),
        (ANY("a", "$x$", "here", arms._token()), "'a': label: '$x$' cannot be shown"),
        (ANY("a", "_x", "here", arms._token()), "'a': label: '_x' cannot be shown"),
        (ANY("a", "A", " ", arms._token()), "'a': source: say where the norm is from"),
        (ANY("MyNorm", "A", "here", arms._token()), "'MyNorm': String should match pattern"),
        (ANY(["a"], "A", "here", arms._token()), "['a']: Input should be a valid string"),
        (ANY("others", "A", "here", arms._token()), "'others': 'others' stands for several"),
        (ANY("twin", "A", "here", arms._batch()), "'twin': has the factors of 'first'"),
        (ANY("first", "A", "here", arms._token()), "given twice: first"),
        (ANY("a", "First", "here", arms._token()), "given twice: First"),
    ],
)
def test_a_wrong_row_is_one_line_with_its_name(row, start):
    (line,) = errors(Row("first", "First", "here", arms._batch()), row)
    assert line.startswith(start)
