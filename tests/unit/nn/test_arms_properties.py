"""Drawn rows of the registry: refused with their name and a reason, or a norm by its formula."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from processes import ROOT
from properties import examples
from scipy.special import erf

from normscope.errors import Explained
from normscope.io.csvfile import write_csv
from normscope.nn import arms
from normscope.nn.arms import Arm, Row, registry
from normscope.nn.norms import build
from normscope.nn.recipe import Norm
from normscope.paper.tex import escaped, macro_name

D, TOKENS = 5, 6
ANY: Any = Row  # of values of any type, as a user may write them
WILDCARD = re.search(r'name=r"(.+)"', (ROOT / "Snakefile").read_text())
MAKERS: dict[str, Callable[..., arms.Factors]] = {
    "token": arms._token,
    "unit": arms._unit,
    "learned": arms._learned,
    "batch": arms._batch,
    "tanh": lambda **factors: arms._pointwise("tanh", **factors),
    "erf": lambda **factors: arms._pointwise("erf", **factors),
    "identity": arms._identity,
}
FACTORS: dict[str, Any] = {
    **dict.fromkeys(("center", "gain", "bias", "embedding_scale", "logit_scale"), st.booleans()),
    "eps": st.sampled_from([1e-9, 1e-5, 0.1, 1.0, 0.0, -1.0, float("nan")]),
    "alpha": st.sampled_from([0.5, 1.0, 2.0, 0.0]),
    "log_rate": st.sampled_from([None, 1.0, 10.0, -1.0]),
    "radius": st.sampled_from(["1", "sqrt(d)", "learned", "2"]),
    "statistic": st.sampled_from(["token", "batch", "none"]),
    "gian": st.just(True),
}
names = st.one_of(
    st.sampled_from(["rmsnorm", "soft", "MyNorm", "my-norm pre", "nan", "true", "_x", "1e5", ""]),
    st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True),
    st.text(max_size=6),
)
texts = st.one_of(st.sampled_from(["RMSNorm", "Soft, large eps", "$x$", "_hidden"]), st.text())


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Mostly rows that are right but for one thing."""
    make = MAKERS[draw(st.sampled_from(list(MAKERS)))]
    given = draw(st.lists(st.sampled_from(list(FACTORS)), max_size=3, unique=True))
    factors = {name: draw(FACTORS[name]) for name in given}
    return Row(draw(names), draw(texts), draw(st.just("here") | texts), make(**factors))


def formula(norm: Norm, x: np.ndarray, p: Mapping[str, np.ndarray]) -> np.ndarray:
    """``gain * radius * project(center(x)) + bias``, or an elementwise map, in NumPy."""
    rate = norm.log_rate
    gain, g = (np.exp(rate * p[k]) if rate and k in p else p.get(k, 1.0) for k in ("gain", "g"))
    over = 0 if norm.statistic == "batch" else -1
    u = x - x.mean(over, keepdims=True) if norm.center else x
    length = np.sqrt((u**2).sum(-1, keepdims=True))
    if norm.elementwise:
        f = {"tanh": np.tanh, "erf": erf}[norm.elementwise]
        u = f(p["alpha"] * x + p.get("shift", 0.0))
    elif norm.statistic != "none" and norm.radius == "sqrt(d)":
        u = u / np.sqrt((u**2).mean(over, keepdims=True) + norm.eps)
    elif norm.statistic != "none":
        u = g * u / np.maximum(length, norm.eps)
    return gain * p.get("weight", 1.0) * u + p.get("bias", 0.0)


def assert_is_its_formula(arm: Arm, seed: int) -> None:
    layer = build(arm.norm, D).double()
    draws = np.random.default_rng(seed)
    for name, p in layer.named_parameters():
        size = draws.uniform(0.5, 1.5, tuple(p.shape))
        if arm.norm.log_rate and name in ("gain", "g"):
            size = size / arm.norm.log_rate
        p.data = torch.from_numpy(np.asarray(size))
    x = draws.normal(1, 3, (TOKENS, D))
    parameters = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    found = layer(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, formula(arm.norm, x, parameters), rtol=1e-12, atol=1e-12)


def assert_survives(name: str, folder: Path) -> None:
    """As part of a file's name, a wildcard's value, a cell of a table and a macro."""
    assert WILDCARD
    job = f"{name}-pre-residual-gpt2-24-0.001-40-1"  # of the study of depth, whose jobs it begins
    assert re.fullmatch(WILDCARD[1], job)
    (folder / f"{job}.tsv").write_text("")
    (folder / f"{job}.tsv").unlink()
    write_csv(folder / "table.csv", pd.DataFrame({"arm": [name], "loss": [1.0]}))
    assert pd.read_csv(folder / "table.csv")["arm"].tolist() == [name]
    assert re.fullmatch(r"\\normscope[A-Za-z]+", macro_name(f"{name} pre loss"))


@examples(150)
@given(given_rows=st.lists(rows(), min_size=1, max_size=3), seed=st.integers(0, 99))
@example(given_rows=[Row("rmsnorm", label, "s", arms._token()) for label in "ab"], seed=0)
@example(given_rows=[Row(name, "Same", "s", arms._token()) for name in "ab"], seed=0)
@example(given_rows=[Row("soft", "Soft", "here", arms._token(gian=True))], seed=0)
@example(given_rows=[Row("soft", "Soft", "here", arms._learned(radius="1"))], seed=0)
@example(given_rows=[Row("soft", "Soft", "here", arms._pointwise("tan"))], seed=0)
@example(given_rows=[Row("soft", "Soft", "here", arms._pointwise("tanh", eps=0.1))], seed=0)
@example(given_rows=[Row("e" * 61, "Long", "here", arms._token())], seed=0)
def test_a_row_is_refused_by_name_or_is_its_formula(
    given_rows: list[Row], seed: int, tmp_path: Path
):
    try:
        made = registry(*given_rows)
    except Explained as e:
        text = str(e)
        for line in text.split("\nARMS of "):
            reason = line.removeprefix("ARMS of ").removeprefix("src/normscope/nn/arms.py: ")
            named = any(reason.startswith(f"{row.name!r}: ") for row in given_rows)
            assert named or reason.startswith("given twice: ")
            assert "Traceback" not in reason
            assert len(reason) < 400
        return
    assert list(made) == [row.name for row in given_rows]
    assert len({arm.label for arm in made.values()}) == len(made)
    for name, arm in made.items():
        assert_is_its_formula(arm, seed)
        assert_survives(name, tmp_path)
        assert not re.search(r"[\x00-\x1f]", escaped(arm.label))


def test_a_misspelt_factor_is_told_the_nearest_right_one():
    wrong = [
        Row("soft", "Soft", "here", arms._token(gian=True)),
        Row("MyNorm", "Mine", "here", arms._token()),
        Row("rmsnorm", "One", "here", arms._token()),
        Row("rmsnorm", "Two", "here", arms._token(gain=True)),
    ]
    with pytest.raises(Explained) as error:
        registry(*wrong)
    lines = [line.partition("arms.py: ")[2] for line in str(error.value).splitlines()]
    assert lines == [
        "'soft': unknown factor 'gian'; did you mean gain?",
        "'MyNorm': String should match pattern '^[a-z][a-z0-9_]*$'",
        "given twice: rmsnorm",
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ANY("a", "A", "src"), "'a': factors: give a call of _token"),
        (ANY("a", "A", "src", Norm()), "'a': factors: give a call of _token"),
        (ANY("a", "A", "src", dict), "'a': factors: give a call of _token"),
        (ANY("a"), "'a': label '': figures hide a label that is empty"),
        (ANY("a", 3, "src", arms._token()), "'a': label 3 is not text: put it in quotes"),
        (ANY("a", "A", 3, arms._token()), "'a': source: say where the norm is from"),
        (("a", "A", "src", arms._token), "('a', 'A', 'src', "),
        ("a", "'a' is not a Row: write Row(name, label, source, factors)"),
        (ANY(["a"], "A", "src", arms._token()), "['a']: Input should be a valid string"),
        (
            ANY("a", "A", "src", arms._batch(center=False)),
            "'a': center is always True here: leave it out",
        ),
        (
            ANY("a", "A", "src", arms._pointwise("tanh", gain=False)),
            "'a': gain is always True here: leave it out",
        ),
        (ANY("a", "A", "src", arms._identity(gain=True)), "'a': "),
        (Row("others", "A", "src", arms._token()), "'others': 'others' stands for several values"),
        (Row("greatest", "A", "src", arms._token()), "'greatest': 'greatest' stands for several"),
        (Row("every", "A", "src", arms._token()), "'every': 'every' stands for several values"),
        (Row("twin", "Twin", "src", arms._batch()), "'twin': has the factors of 'first'"),
    ],
)
def test_a_row_that_cannot_be_an_arm_is_one_line_with_its_name(row: Any, reason: str):
    with pytest.raises(Explained) as error:
        registry(ANY("first", "First", "here", arms._batch()), row)
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"ARMS of src/normscope/nn/arms.py: {reason}")
    assert len(line) < 400
