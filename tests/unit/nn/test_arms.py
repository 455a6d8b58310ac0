"""The registry: names and factors of its rows, where layers start, and errors of wrong rows."""

import math
from typing import Any

import pytest
import torch

from normscope.errors import Explained
from normscope.nn import arms
from normscope.nn.arms import ARMS, LABELS, Row, add, registry
from normscope.nn.norms import build

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)

# center, radius and affine part, by the parts of a name
RADII = {"l2": "1", "scaled": "learned", "scalenorm": "learned"}
ENDS = {
    "layernorm": (True, True),
    "rmsnorm": (True, False),
    "gain": (True, False),
    "bias": (False, True),
    "affine": (True, True),
}


ALPHAS = {"scaled": 1.0, "two": 2.0, "attention": 1.0, "third": 0.3}


@pytest.mark.parametrize("arm", [name for name in ARMS if ARMS[name].norm.statistic == "token"])
def test_the_name_of_a_token_norm_says_its_factors(arm):
    norm, parts = ARMS[arm].norm, arm.split("_")
    radius = [RADII[part] for part in parts if part in RADII] or ["sqrt(d)"]
    said = ("centered" in parts or "layernorm" in parts, radius[-1], *ENDS.get(parts[-1], (0, 0)))
    assert (norm.center, norm.radius, norm.gain, norm.bias) == said
    # the size of a projection on the unit sphere is learned by its logarithm
    assert (norm.log_rate is not None) == ("l2" in parts and (norm.gain or radius[-1] == "learned"))


@ALL
def test_a_layer_learns_what_its_factors_say_from_unit_gain_and_zero_bias(arm):
    norm, size = ARMS[arm].norm, 0.0 if ARMS[arm].norm.log_rate else 1.0  # or a logarithm of it
    starts: dict[str, float] = {}
    if norm.gain:
        starts["gain"] = size
    if norm.bias:
        starts["bias"] = 0
    if norm.radius == "learned":
        starts["g"] = size * math.sqrt(D)
    if norm.elementwise:  # where the papers start DyT and Derf, unless the name says otherwise
        starts["alpha"] = ALPHAS.get(arm.partition("_")[2], 0.5)
    if norm.elementwise == "erf":
        starts["shift"] = 0
    layer = build(norm, D)
    learned = {name.replace("weight", "gain"): p for name, p in layer.named_parameters()}
    assert learned.keys() == starts.keys()
    for name, p in learned.items():
        torch.testing.assert_close(p.detach(), torch.full_like(p, starts[name]))


def errors(*rows: Row) -> list[str]:
    """The message of each fault, after the name of the file."""
    with pytest.raises(Explained) as error:
        registry(*rows)
    return [line.partition("arms.py: ")[2] for line in str(error.value).splitlines()]


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        (arms._token(gian=True), "gian: unknown key; did you mean gain?"),
        (arms._batch(center=False), "batch statistics always center"),
        (arms._batch(gain=True), "batch statistics come with gain and bias, or with neither"),
        (arms._pointwise("tanh", radius="1"), "without a statistic there is no center and no"),
        (arms._pointwise("tanh", eps=0.1), "eps has no effect without a statistic"),
        (arms._token(elementwise="erf"), "an elementwise map goes with statistic none"),
        (arms._token(alpha=1.0), "alpha is a factor of elementwise maps only"),
        (arms._token(alpha_at={"final": 1.0}), "alpha_at is a factor of elementwise maps only"),
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
        (ANY("twin", "A", "here", arms._batch()), "'twin': has the factors of 'first'"),
        (ANY("first", "A", "here", arms._token()), "given twice: first"),
        (ANY("a", "First", "here", arms._token()), "given twice: First"),
    ],
)
def test_a_wrong_row_is_one_line_with_its_name(row, start):
    (line,) = errors(Row("first", "First", "here", arms._batch()), row)
    assert line.startswith(start)


def test_added_arms_replace_each_other():
    """The built-in ones stay."""
    row = Row("mine", "Mine", "here", arms._token(eps=0.5))
    built_in = {row.name: row.label for row in arms.BUILT_IN}
    add(row)
    assert ARMS["mine"].norm.eps == 0.5
    assert built_in | {"mine": "Mine"} == LABELS
    add(Row("other", "Other", "here", arms._token(eps=0.5)))
    assert (list(ARMS)[-1], len(LABELS)) == ("other", len(ARMS))
    assert "mine" not in ARMS
    add()
    assert built_in == LABELS
