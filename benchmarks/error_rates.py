"""How often chance alone gives a wrong verdict, by simulation with the ledger's own code.

    python benchmarks/error_rates.py docs/error_rates.csv

Every design draws many ledgers whose truth is known, where errors are likeliest, and counts those
with a wrong verdict.
"""

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from normscope.verdicts.judgement import judge
from scipy import stats
from simulated import (
    FAR,
    NULL,
    Draw,
    Kind,
    above_the_least,
    accuracies,
    capped,
    correlations,
    difference,
    exponential,
    failures,
    half_ones,
    heavy,
    lognormal,
    lognormal_differences,
    losses,
    never_together,
    normal,
    of_cases,
    of_documents,
    of_readings,
    on_other_seeds,
    on_pilots,
    one_fails,
    same,
    sensitivities,
    shares,
    signs,
    single,
    two_arms,
)

from normscope.statistics.levels import ALPHA

LIMIT = 0.055  # the largest error rate that a design of the ledger may have
COLUMNS = ("design", "truth", "error", "n", "ledgers", "rate", "accuracy", "used")
SIZES, TWO, ONE = (6, 7, 12, 20), (7, 20), (7,)
EVERY = (6, 7, 8, 10, 12, 14, 20)  # numbers of seeds of trained models in the two configurations
MANY, FEW = 12_000, 2_000  # ledgers of a row, and of one whose ledgers are expensive


@dataclass(frozen=True)
class Design:
    """A way to decide, and a truth.

    Args:
        wrong: The verdicts that are wrong about the statements with the key ``NULL``.
        sizes: Numbers of seeds.
        ledgers: How many ledgers are drawn.
    """

    design: str
    truth: str
    draw: Draw
    wrong: Sequence[str] = ("holds", "fails", "depends")
    sizes: Sequence[int] = SIZES
    ledgers: int = MANY

    def errors(self, rng: np.random.Generator, n: int, ledgers: int) -> int:
        """The number of ledgers with a wrong verdict."""
        return sum(
            any(j.verdict in self.wrong and j.claim.key == NULL for j in judge(ledger, ALPHA))
            for ledger in self.draw(rng, n, ledgers)
        )


def margin(size: float, **kind: Any) -> Kind:
    return {**kind, "margin": size, "margin_because": "planted"}


FLIP, MEDIAN = {"test": "sign_flip"}, {"test": "median"}
RATIO: dict[str, Any] = {"scale": "log", "bound": 1.0}
ALIKE: dict[str, Any] = {"direction": "within", "test": "equivalence"}
KINDS = ({}, margin(0.4, **ALIKE))
HOLDS, FAILS = ("holds",), ("fails",)
PILOT = "at the best setting on 6 pilot seeds"
LOO = "at the best setting on the other seeds"
RATE = "sensitivity to the learning rate"
TIED, NEAR, CLEAR = (0.0,) * 4, (0.0, 0.5, 0.5, 0.5), (0.0, FAR, FAR, FAR)
FLAT, CURVE = ((0.0, 0.0, 0.0),) * 2, ((0.06, 0.0, 0.03),) * 2
TIE_AND_BEST = ((0.0, 0.0, 0.3), (0.15, 0.0, 0.15))  # both means are 0.1 above the least
READ = {
    "0 and far above": (0.0, FAR),
    "0 and far below": (0.0, -FAR),
    "0 and 0": (0.0, 0.0),
    "0, 0 and far above": (0.0, 0.0, FAR),
}
AT_09 = {"bound": 0.9}
COSTLY: dict[str, Any] = {"sizes": TWO, "ledgers": FEW}


def of_the_ledger() -> Iterator[Design]:
    """The designs of the ledger."""
    yield Design("t", "equal arms, paired by the ledger", two_arms({}, same(losses)), sizes=ONE)
    yield Design("t", "normal, no difference", single({}, normal()), sizes=EVERY)
    yield Design("t", "heavy tails: t(2)", single({}, heavy), sizes=TWO)
    yield Design(
        "t", "difference of lognormal values", single({}, lognormal_differences), sizes=TWO
    )
    yield Design("t of logarithms", "lognormal, a ratio of 1", single(RATIO, lognormal()))
    for name, kind in {"t": {}, "median": MEDIAN}.items():
        tested = margin(0.5, **kind)
        relevant = f"{name}, relevant difference"
        yield Design(relevant, "no difference", single(tested, normal()), HOLDS, TWO)
        yield Design(relevant, "at the margin", single(tested, normal(0.5)), FAILS, TWO)
    wide, narrow = margin(1.0, **ALIKE), margin(0.1, **ALIKE)
    yield Design("equivalence", "at the margin", single(wide, normal(1.0)))
    yield Design("equivalence", "at a narrow margin", single(narrow, normal(0.1)), sizes=TWO)
    factor = margin(2.0, **RATIO, **ALIKE)
    yield Design(
        "equivalence of ratios", "at the factor", single(factor, lognormal(2.0)), sizes=TWO
    )
    medians = margin(1.0, **{**ALIKE, **MEDIAN})
    yield Design("equivalence of medians", "at the margin", single(medians, normal(1.0)))
    yield Design("median", "normal, no difference", single(MEDIAN, normal()), sizes=EVERY)
    yield Design("median", "exponential, no difference", single(MEDIAN, exponential))
    yield Design("median", "shares, half of them 1", single({**MEDIAN, "bound": 0.999}, half_ones))
    for risk in (0.1, 0.5):
        arms = same(capped(risk))
        yield Design(
            "median of losses", f"equal arms, {risk:.0%} fail", two_arms(MEDIAN, arms), **COSTLY
        )
    for risk in (0.1, 0.3, 0.5, 0.9):
        draw = two_arms(FLIP, failures(risk))
        yield Design("failures, sign flips", f"{risk:.0%} fail", draw, ledgers=FEW)
    together = two_arms(FLIP, failures(0.5, together=0.7))
    yield Design("failures, sign flips", "50% fail, mostly the same seeds", together, **COSTLY)
    never = two_arms(FLIP, never_together)
    yield Design("failures, sign flips", "50% fail, never the same seeds", never, ledgers=FEW)
    yield Design("correlations, sign flips", "no correlation", single(FLIP, correlations))
    undecided = "t of losses, undecided if a model fails"
    yield Design(undecided, "equal arms, 5% fail", two_arms({}, same(capped(0.05))), **COSTLY)
    unequal = two_arms({}, one_fails(0.05))
    yield Design(undecided, "equal where they train, 5% of one arm fail", unequal, **COSTLY)
    yield Design(PILOT, "4 tied settings", single({}, on_pilots(TIED, 6)))
    two = single({}, on_pilots(TIED, 2))
    yield Design(PILOT.replace("6", "2"), "4 tied settings", two, sizes=EVERY)
    yield Design(PILOT, "one setting clearly best", single({}, on_pilots(CLEAR, 6)), sizes=TWO)
    with_margin = single(margin(5.0), on_pilots(NEAR, 6))
    yield Design(f"{PILOT}, relevant difference", "nearly tied settings", with_margin, HOLDS, TWO)
    for truth, curves, noise in (
        ("flat curves, noise 1 to 5", FLAT, (0.02, 0.1)),
        ("near ties, noise 1 to 5", CURVE, (0.02, 0.1)),
        ("a tie and a clear best rate, noise 3 to 1", TIE_AND_BEST, (0.06, 0.02)),
    ):
        yield Design(RATE, truth, sensitivities(curves, noise), sizes=TWO, ledgers=1_000)
    yield from of_several()


def of_several() -> Iterator[Design]:
    """The designs of several cases, readings, statements and documents."""
    costlier = {**COSTLY, "ledgers": 2 * FEW}
    for truth, means in {"1 of 4 at the bound": (0, FAR, FAR, FAR), "4 of 4": (0,) * 4}.items():
        yield Design("all cases", truth, of_cases(means), **costlier)
        mirrored = of_cases([-mean for mean in means], holds_in="any")
        yield Design("any case", truth, mirrored, **costlier)
    ends = of_cases((1, 1, -1, -1), **margin(1.0, **ALIKE))
    yield Design("all cases, equivalence", "4 of 4 at the margin", ends, **costlier)
    for truth, means in READ.items():
        for r in (0.0, 0.5, 0.99):
            words = f"true means {truth}, correlation {r:g}"
            yield Design("readings", words, of_readings(means, r), sizes=ONE)
    opposed = of_readings((0.0, 0.0), -0.99)
    yield Design("readings", "true means 0 and 0, correlation -0.99", opposed, sizes=ONE)
    in_document: dict[str, Any] = {"sizes": ONE}
    yield Design("Holm in a document", "10 nulls", of_documents(1, 10), **in_document)
    mixed = of_documents(1, 10, kinds=KINDS)
    yield Design("Holm in a document", "10 nulls, half equivalence", mixed, **in_document)
    yield Design("Holm in a document", "5 nulls, 5 effects", of_documents(1, 5, 5), **in_document)
    gate = of_documents(1, 8, 2, primary=2)
    yield Design("main claims first", "2 main effects, 8 nulls", gate, **in_document)
    gate = of_documents(1, 9, 1, primary=2)
    yield Design("main claims first", "a main effect, a main null, 8 nulls", gate, **in_document)


def not_of_the_ledger() -> Iterator[Design]:
    """Designs that do not keep the level."""
    mixture = single({}, difference(one_fails(0.05, handicap=1.5)))
    for design, truth, draw in (
        *(
            (LOO, f"{settings} tied settings", single({}, on_other_seeds(settings)))
            for settings in (3, 4)
        ),
        (PILOT, "nearly tied settings, about the best ones", single({}, on_pilots(NEAR, 6))),
        (
            "mean loss over rates minus the least",
            "flat curves, noise 3 to 1",
            single({}, above_the_least(FLAT, (0.06, 0.02))),
        ),
        ("t of losses, failures at a cap", "equal mean losses, 5% of one arm fail", mixture),
        ("t of bounded values", "9 of 10 are 1: a mean of 0.9", single(AT_09, accuracies)),
        ("t of bounded values", "shares, a mean of 0.9", single(AT_09, shares)),
        ("t of bounded values", "-1 or 1, a mean of 0", single({}, signs)),
    ):
        yield Design(design, truth, draw, ledgers=2 * FEW)
    documents = of_documents(5, 6)
    words = "5 documents of 6 nulls"
    yield Design("Holm in each document", words, documents, sizes=ONE, ledgers=FEW)


def simulate(design: Design, n: int, *, used: bool) -> dict[str, str]:
    """The row of a design and a number of seeds.

    ``accuracy`` is the half-width of the 99% interval of a rate of 5%, or of a larger one.
    """
    rng = np.random.default_rng([n, *f"{design.design}: {design.truth}".encode()])
    rate = design.errors(rng, n, design.ledgers) / design.ledgers
    likely = max(rate, ALPHA)
    error = math.sqrt(likely * (1 - likely) / design.ledgers)
    words = (design.design, design.truth, " or ".join(design.wrong), n, design.ledgers)
    numbers = (f"{rate:.4f}", f"{stats.norm.ppf(0.995) * error:.4f}", "yes" if used else "no")
    return {key: str(value) for key, value in zip(COLUMNS, (*words, *numbers), strict=True)}


ROWS = [
    (design, n, used)
    for designs, used in ((of_the_ledger(), True), (not_of_the_ledger(), False))
    for design in designs
    for n in design.sizes
]


def _simulate(i: int) -> dict[str, str]:
    """A row by its number, because the functions of a design cannot be sent to a process."""
    design, n, used = ROWS[i]
    return simulate(design, n, used=used)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", newline="") as file, ProcessPoolExecutor() as processes:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in processes.map(_simulate, range(len(ROWS))):
            writer.writerow(row.values())
            file.flush()
