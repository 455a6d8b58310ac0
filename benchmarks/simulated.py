"""Ledgers whose data are drawn and whose truth is known, for the error rates of its designs.

The data of trained models go through ``find``, with one case per ledger; other values go through
``decide``. Values have the shape (ledgers, seeds).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from normscope.studies.depth.claims import compare_sensitivities
from normscope.verdicts.case import Case, decide
from normscope.verdicts.claim import Claim, Evidence, Finding
from normscope.verdicts.contrast import find
from normscope.verdicts.entry import Document, Entry, completed

from normscope.verdicts.vocabulary import Vocabulary

RAW = {"study": "made", "where": "here", "statement": "Norms help.", "figure": "loss"}
RAW |= {"quantity": "difference", "criterion": "it is above 0", "differs_because": "it is drawn"}
TESTED = {"test": "t", "direction": "greater", "bound": 0.0, "bound_because": "it is planted"}
PAPER = {"title": "On norms", "asserts": False}
NULL, EFFECT = "null", "effect"  # keys of statements: those with a wrong verdict, and the others
FAR = 9.0  # standard deviations: a difference that no test misses
Kind = Mapping[str, Any]  # what the entry of a statement has
Shape = tuple[int, int]
Ledgers = list[list[Claim]]
Draw = Callable[[np.random.Generator, int, int], Ledgers]  # from numbers of seeds and of ledgers
Values = Callable[[np.random.Generator, Shape], np.ndarray]
Arm = Callable[[np.random.Generator, Shape], Mapping[str, np.ndarray]]  # columns of its models
Arms = Callable[[np.random.Generator, Shape], Sequence[Mapping[str, np.ndarray]]]


class Study:
    """What ``find`` asks of a study."""

    def vocabulary(self) -> Vocabulary:
        return Vocabulary()


def contrast(measure: str) -> dict[str, Any]:
    """Two arms, paired by seed, with a case for each ledger."""
    sides = {"cells": {"arm": "a"}, "less": {"arm": "b"}}
    return {"table": "made.runs", "measure": measure, "each": ["ledger"], **sides}


def entry(**changes: Any) -> Entry:
    """A statement; its only reading is ``stated`` unless others are given."""
    whole = RAW | TESTED | {"unit": "model", "readings": {"stated": {}}} | changes
    document = completed(PAPER | {"claims": {"key": whole}})
    return Document.model_validate(document).claims["key"]


LOSS: dict[str, Any] = {"contrast": contrast("loss")}


@cache
def _entry(kind: tuple, readings: tuple[str, ...]) -> Entry:
    """To make an entry takes longer than to judge it."""
    return entry(readings={name: {} for name in readings}, **dict(kind))


def statement(kind: Kind, *readings: Mapping[str, Case], key: str = NULL, paper: int = 0) -> Claim:
    """A statement with these cases in each of its readings."""
    findings = {letter: Finding(cases) for letter, cases in zip("abcd", readings, strict=False)}
    return Claim(f"paper_{paper}", key, _entry(tuple(kind.items()), tuple(findings)), findings)


def cases_of(kind: Kind, values: np.ndarray) -> list[Case]:
    """One case per row of values."""
    reading = _entry(tuple(kind.items()), ("a",)).first
    return [decide(reading, row.tolist(), level=0.95) for row in values]


def single(kind: Kind, values: Values) -> Draw:
    """One statement about values that are drawn."""
    return lambda rng, n, k: [
        [statement(kind, {"": case})] for case in cases_of(kind, values(rng, (k, n)))
    ]


def evidence(*sides: pd.DataFrame) -> Evidence:
    return Evidence(
        {"made": {"runs": pd.concat(sides, ignore_index=True)}}, {"made": Study()}, 0.95
    )


def models(arm: str, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """One row per model."""
    ledgers, seeds = np.indices(next(iter(columns.values())).shape)
    keys = {"arm": arm, "ledger": ledgers.ravel(), "seed": seeds.ravel()}
    return pd.DataFrame(keys | {name: v.ravel() for name, v in columns.items()})


def two_arms(kind: Kind, arms: Arms) -> Draw:
    """One statement that compares the losses of two arms."""

    def drawn(rng: np.random.Generator, n: int, k: int) -> Ledgers:
        tables = [models(*side) for side in zip("ab", arms(rng, (k, n)), strict=True)]
        cases = find(entry(**kind, **LOSS).first, evidence(*tables)).cases.values()
        return [[statement(kind, {"": case})] for case in cases]

    return drawn


def difference(arms: Arms) -> Values:
    """The losses of the first arm minus those of the second."""

    def drawn(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        first, second = arms(rng, shape)
        return first["loss"] - second["loss"]

    return drawn


def same(arm: Arm) -> Arms:
    return lambda rng, shape: [arm(rng, shape), arm(rng, shape)]


def losses(rng: np.random.Generator, shape: Shape) -> Mapping[str, np.ndarray]:
    return {"loss": rng.normal(size=shape)}


def capped(risk: float) -> Arm:
    """Some models fail, and then their loss is 30 standard deviations above that of the others."""

    def drawn(rng: np.random.Generator, shape: Shape) -> Mapping[str, np.ndarray]:
        failed = rng.random(shape) < risk
        loss = np.where(failed, 30.0, rng.normal(size=shape))
        return {"loss": loss, "failed": failed.astype(float)}

    return drawn


def one_fails(risk: float, handicap: float = 0.0) -> Arms:
    """Only the first arm fails at times; the second is worse by a handicap than trained models."""
    return lambda rng, shape: [
        capped(risk)(rng, shape),
        {"loss": handicap + rng.normal(size=shape), "failed": np.zeros(shape)},
    ]


def failures(risk: float, together: float = 0.0) -> Arms:
    """Both arms fail with the same probability; a part of the seeds has one outcome in both."""

    def drawn(rng: np.random.Generator, shape: Shape) -> Sequence[Mapping[str, np.ndarray]]:
        shared, of_both = rng.random(shape) < together, rng.random(shape) < risk
        arms = [np.where(shared, of_both, rng.random(shape) < risk) for _ in "ab"]
        return [{"loss": arm.astype(float)} for arm in arms]

    return drawn


def never_together(rng: np.random.Generator, shape: Shape) -> Sequence[Mapping[str, np.ndarray]]:
    """Of each seed, one arm fails and the other does not."""
    failed = signs(rng, shape) > 0
    return [{"loss": failed.astype(float)}, {"loss": 1.0 - failed}]


def on_pilots(curve: Sequence[float], pilots: int) -> Values:
    """The difference of two arms, each at the best of its settings on pilot seeds.

    Args:
        curve: The mean losses of both arms at each setting, in standard deviations.
    """

    def arm(rng: np.random.Generator, shape: Shape) -> Mapping[str, np.ndarray]:
        pilot = curve + rng.normal(0, 1 / math.sqrt(pilots), (shape[0], len(curve)))
        return {"loss": np.take(curve, pilot.argmin(axis=1))[:, None] + rng.normal(size=shape)}

    return difference(same(arm))


def on_other_seeds(settings: int) -> Values:
    """The same with tied settings, and the best one over the other seeds for each seed."""

    def arm(rng: np.random.Generator, shape: Shape) -> Mapping[str, np.ndarray]:
        tried = rng.normal(size=(*shape, settings))
        of_others = tried.sum(axis=1, keepdims=True) - tried
        best = of_others.argmin(axis=2)[..., None]
        return {"loss": np.take_along_axis(tried, best, axis=2)[..., 0]}

    return difference(same(arm))


def _arms_over_rates(
    rng: np.random.Generator,
    shape: Shape,
    curves: Sequence[Sequence[float]],
    noise: Sequence[float],
) -> list[np.ndarray]:
    """Losses (ledgers, seeds, rates) of each arm."""
    sides = zip(curves, noise, strict=True)
    return [curve + rng.normal(0, sd, (*shape, len(curve))) for curve, sd in sides]


def sensitivities(curves: Sequence[Sequence[float]], noise: Sequence[float]) -> Draw:
    """One statement that the first of two arms is more sensitive to the learning rate.

    Args:
        curves: The mean losses at each rate; the two have the same sensitivity.
        noise: The standard deviation of each arm's losses.
    """
    kind = {"test": "median"}
    reading = entry(**kind, contrast=contrast("advantage")).first

    def drawn(rng: np.random.Generator, n: int, k: int) -> Ledgers:
        tables = []
        for arm, tried in zip("ab", _arms_over_rates(rng, (k, n), curves, noise), strict=True):
            advantage = tried.mean(axis=2, keepdims=True) - tried
            for rate in range(tried.shape[2]):
                table = models(arm, {"advantage": advantage[..., rate]})
                tables.append(table.assign(learning_rate=rate))
        cases = compare_sensitivities(reading, evidence(*tables)).cases.values()
        return [[statement(kind, {"": case})] for case in cases]

    return drawn


def above_the_least(curves: Sequence[Sequence[float]], noise: Sequence[float]) -> Values:
    """The mean loss over rates minus the least loss of the same seed, of two arms."""

    def drawn(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        tried = _arms_over_rates(rng, shape, curves, noise)
        first, second = (losses.mean(axis=2) - losses.min(axis=2) for losses in tried)
        return first - second

    return drawn


def of_cases(truths: Sequence[float], **kind: Any) -> Draw:
    """One reading, with a case for each true mean."""

    def drawn(rng: np.random.Generator, n: int, k: int) -> Ledgers:
        columns = [cases_of(kind, rng.normal(mean, 1, (k, n))) for mean in truths]
        rows = zip(*columns, strict=True)
        return [[statement(kind, dict(zip("abcdef", row, strict=False)))] for row in rows]

    return drawn


def of_readings(truths: Sequence[float], correlation: float) -> Draw:
    """One statement, with a reading for each true mean; the values of a seed are correlated."""
    m = len(truths)
    covariance = np.full((m, m), correlation) + (1 - correlation) * np.eye(m)

    def drawn(rng: np.random.Generator, n: int, k: int) -> Ledgers:
        values = rng.multivariate_normal(truths, covariance, (k, n))
        columns = [cases_of({}, values[..., i]) for i in range(m)]
        return [
            [statement({}, *({"": case} for case in row))] for row in zip(*columns, strict=True)
        ]

    return drawn


def of_documents(
    documents: int, nulls: int, effects: int = 0, primary: int = 0, kinds: Sequence[Kind] = ({},)
) -> Draw:
    """Ledgers of several documents, whose first statements are true and may be main claims."""

    def drawn(rng: np.random.Generator, n: int, k: int) -> Ledgers:
        ledgers: Ledgers = [[] for _ in range(k)]
        for paper in range(documents):
            for i in range(effects + nulls):
                kind = {**kinds[i % len(kinds)], "primary": i < primary}
                key = EFFECT if i < effects else NULL
                mean = FAR if key == EFFECT else kind.get("margin", 0.0)
                cases = cases_of(kind, rng.normal(mean, 1, (k, n)))
                for ledger, case in zip(ledgers, cases, strict=True):
                    ledger.append(statement(kind, {"": case}, key=key, paper=paper))
        return ledgers

    return drawn


# Values


def normal(mean: float = 0.0) -> Values:
    return lambda rng, shape: rng.normal(mean, 1, shape)


def lognormal(median: float = 1.0) -> Values:
    return lambda rng, shape: median * rng.lognormal(size=shape)


def lognormal_differences(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return rng.lognormal(size=shape) - rng.lognormal(size=shape)


def heavy(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return rng.standard_t(2, shape)


def exponential(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """The median is 0."""
    return rng.exponential(size=shape) - math.log(2)


def half_ones(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Shares that are 1 in half of the models, and anything below it in the others."""
    return np.where(signs(rng, shape) > 0, 1.0, rng.beta(2, 2, shape))


def accuracies(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """1 in nine of ten models, and 0 in the tenth."""
    return (rng.random(shape) < 0.9).astype(float)


def shares(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A mean of 0.9."""
    return rng.beta(9, 1, shape)


def signs(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return rng.choice([-1.0, 1.0], shape)


def correlations(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Pearson's r of 16 independent normal pairs: r^2 is a beta of 1/2 and 7."""
    return signs(rng, shape) * np.sqrt(rng.beta(0.5, 7, shape))
