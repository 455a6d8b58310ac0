"""How often chance alone decides a comparison wrongly, by simulation with the statements' own code.

    python benchmarks/error_rates.py docs/error_rates.csv

Every row draws samples at a truth where the expectation and its opposite are equally wrong, or
nearly so, and counts the samples that are decided although they should not be. One row has an
effect, and counts those that find it.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from normscope.verdicts.comparison import Comparison
from normscope.verdicts.sample import Sample
from normscope.verdicts.test import result

SIZES = (8, 12, 20)  # units: seeds, or texts
BETWEEN = (
    0.6  # standard deviation of an effect between texts, in that between the seeds of one text
)
SEEDS = 4  # of each text
COLUMNS = ("test", "truth", "n", "samples", "rate")
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


class Case(NamedTuple):
    """A test at a truth.

    Args:
        test, truth: In words.
        expect: The expectation.
        draw: Samples of a shape (samples, units).
        samples: How many are drawn.
        is_median, is_count: Whether the sign test, or sign flips, decide; otherwise Student's t.
    """

    test: str
    truth: str
    expect: str
    draw: Draw
    samples: int = 20_000
    is_median: bool = False
    is_count: bool = False


def normal(mean: float = 0.0) -> Draw:
    """Normal values with a standard deviation of 1."""
    return lambda rng, shape: rng.normal(mean, 1.0, shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Symmetric values with heavy tails."""
    return rng.standard_t(2, shape)


def skewed_differences(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Differences of lognormal losses with equal distributions."""
    return rng.lognormal(size=shape) - rng.lognormal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Exponential losses less their mean."""
    return rng.exponential(size=shape) - 1.0


def skewed_median(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Exponential losses less their median."""
    return rng.exponential(size=shape) - np.log(2)


def failures(risk: float) -> Draw:
    """Differences of failures of two arms that fail equally often."""
    return lambda rng, shape: (
        (rng.random(shape) < risk).astype(float) - (rng.random(shape) < risk).astype(float)
    )


def one_text(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Seeds of one text: what the text adds is the same for all of them."""
    return rng.normal(0.0, BETWEEN, (shape[0], 1)) + rng.normal(size=shape)


def texts(mean: float = 0.0) -> Draw:
    """Means over the seeds of a text, of as many texts as there are units."""
    spread = np.hypot(BETWEEN, 1 / np.sqrt(SEEDS))
    return lambda rng, shape: rng.normal(mean, spread, shape)


def cases() -> Iterator[Case]:
    """The tests, each at truths where chance decides."""
    yield Case("t over seeds of one text", "no effect on the mean text", "above 0", one_text)
    yield Case(
        f"t over texts, {SEEDS} seeds each", "no effect on the mean text", "above 0", texts()
    )
    yield Case(
        f"t over texts, {SEEDS} seeds each", "an effect of one seed sd", "above 0", texts(1.0)
    )
    yield Case("t", "normal, at the bound", "above 0", normal())
    yield Case("t", "heavy tails, at the bound", "above 0", heavy)
    yield Case("t", "differences of skewed losses, at the bound", "above 0", skewed_differences)
    yield Case("t", "skewed losses, at the bound", "above 0", skewed)
    for truth, mean in {"at the upper end": 1.0, "at the lower end": -1.0}.items():
        yield Case("t, two ends", f"normal, {truth}", "within 1", normal(mean))
    yield Case("t, two ends", "normal, at one of two close ends", "within 0.1", normal(0.1))
    median = {"is_median": True, "samples": 5_000}
    yield Case("sign test", "normal, at the bound", "above 0", normal(), **median)
    yield Case("sign test", "skewed losses, at the bound", "above 0", skewed_median, **median)
    yield Case("sign test, two ends", "normal, at the upper end", "within 1", normal(1.0), **median)
    for risk in (0.1, 0.5):
        flips = failures(risk)
        yield Case(
            "sign flips", f"{risk:.0%} of both sides fail", "above 0", flips, 5_000, is_count=True
        )


def rate(case: Case, n: int) -> float:
    """The share of samples that are decided."""
    rng = np.random.default_rng([n, *f"{case.test}: {case.truth}".encode()])
    measure = f"{'median ' if case.is_median else ''}made.runs.loss"
    comparison = Comparison(measure=measure, expect=case.expect)
    decided = 0
    for values in case.draw(rng, (case.samples, n)):
        sample = Sample(tuple(values.tolist()), (), is_log=False)
        found = result(comparison, sample, is_count=case.is_count, level=0.95)
        decided += found.outcome != "undecided"
    return decided / case.samples


ROWS = [(i, n) for i in range(len(list(cases()))) for n in SIZES]


def row(at: tuple[int, int]) -> tuple[str, ...]:
    """A row of the table, by the number of its case."""
    i, n = at
    case = list(cases())[i]
    return case.test, case.truth, str(n), str(case.samples), f"{rate(case, n):.4f}"


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", newline="") as file, ProcessPoolExecutor(2) as processes:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(processes.map(row, ROWS))
