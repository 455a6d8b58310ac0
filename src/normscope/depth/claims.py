"""The tutorial's statements on residual connections and placement, each beside a measurement.

Its curves are drawn, not measured, and its statements come without a size of network, a start or a
learning rate: a statement is therefore tested in every kind of network that the tables have
(placement, start, trained or not), at the depth that its test names, and a verdict says for which
it holds. Models of one seed are pairs; seeds enough for an exact test are needed.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from normscope.depth.grid import Shape
from normscope.depth.measures import RESOLUTION, STATES
from normscope.depth.recipe import Kept
from normscope.stats import estimate, margin_verdict, sign_verdict
from normscope.tables import significant

NORM = "layernorm"  # the tutorial's
PUBLISHED_RATE = 0.8  # "typical for deep networks"; drawn as 0.8^k
PRINTED = 0.05  # what 0.8 may stand for, on either side
VANISHED = 0.1  # the tutorial's threshold
VANISHES_BY = 10  # "near zero by layer 10 to 15"
KEEPS = 0.7  # drawn as 0.7 + 0.3 * 0.9^k
NEAR_ONE = 0.5  # a singular value from which a direction counts as passed on
HEALTHY = 2.0  # factor by which a stream may grow from the first block to the last
LEARNED = 0.1  # nats below the loss of character frequencies from which a model has learned
SMALLEST = math.ulp(0.0)
PLACEMENTS = {"pre": "pre-norm", "post": "post-norm", "peri": "peri-norm", "none": "no norm"}
INITS = {"gpt2": "", "gpt2_flat": ", unscaled start", "xavier": ", Xavier's start"}


@dataclass(frozen=True)
class Claim:
    """A statement of the tutorial, what tests it, and what is found."""

    key: str
    claim: str
    test: str
    published: str
    corrected: str
    verdict: str


@dataclass(frozen=True)
class Network:
    """Models that differ in nothing but their seeds, at one moment."""

    shape: Shape
    state: str
    values: Mapping[int, float]  # by seed

    @property
    def name(self) -> str:
        """How a sentence calls it."""
        trained = ", trained" if self.state == "trained" else ""
        named = PLACEMENTS[self.shape.placement] + INITS[self.shape.init]
        return f"{named}, {self.shape.depth} blocks{trained}"


def words(values: Iterable[float], level: float, *, geometric: bool = False) -> str:
    """A mean over seeds with its interval, to 3 digits."""
    there = [log(v) if geometric else v for v in values if not math.isnan(v)]
    if not there:
        return "–"
    e = estimate(there, level)
    mean, low, high = (math.exp(v) if geometric else v for v in (e.mean, e.low, e.high))
    if e.n < 2:
        return significant_or_tiny(mean)
    return f"{significant_or_tiny(mean)} [{significant_or_tiny(low)}, {significant_or_tiny(high)}]"


def significant_or_tiny(value: float) -> str:
    """3 digits; a power of ten where these would be zeros, and 0 for 0."""
    if value == 0:
        return "0"
    if math.isnan(value):
        return "–"
    return f"{value:.2e}" if abs(value) < 1e-4 or abs(value) >= 1e4 else significant(value)


def log(value: float) -> float:
    """The logarithm; of 0 and of infinity that of the least and the greatest float."""
    return math.log(min(max(value, SMALLEST), sys.float_info.max))


def together(verdicts: Mapping[str, str]) -> str:
    """One verdict for several networks: theirs if it is the same, else which holds where."""
    if not verdicts:
        return "no data"
    if len(set(verdicts.values())) == 1:
        return next(iter(verdicts.values()))
    kinds: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        kinds.setdefault(verdict, []).append(name)
    return "depends: " + "; ".join(f"{kind} for {', '.join(of)}" for kind, of in kinds.items())


@dataclass(frozen=True)
class Evidence:
    """The workflow's tables.

    Args:
        rates: rates.csv, a row a model.
        losses: losses.csv, a row a trained model.
        kept: the schedule of the trained models in ``rates``.
        level: confidence level.
    """

    rates: pd.DataFrame
    losses: pd.DataFrame
    kept: Kept
    level: float

    def networks(self, measure: str, *, residual: bool, state: str = "start") -> list[Network]:
        """Values of a measure by network; the tutorial's norm, and no norm."""
        of = self.rates[
            (self.rates["residual"] == residual)
            & (self.rates["state"] == state)
            & self.rates["arm"].isin([NORM, "none"])
        ].dropna(subset=measure)
        return [
            Network(Shape._make(key), state, dict(zip(group["seed"], group[measure], strict=True)))
            for key, group in of.groupby(list(Shape._fields), sort=False)
        ]

    def trained(self, **where: str | bool) -> pd.DataFrame:
        """Losses of the tutorial's norm with these values."""
        of = self.losses[self.losses["arm"] == NORM]
        for column, value in where.items():
            of = of[of[column] == value]
        return of


def deepest(networks: list[Network]) -> list[Network]:
    """Of networks that differ in depth alone, the deepest."""
    best: dict[tuple, Network] = {}
    for network in networks:
        key = (network.shape[:-1], network.state)
        if key not in best or network.shape.depth > best[key].shape.depth:
            best[key] = network
    return list(best.values())


def from_depth(networks: list[Network], depth: int) -> list[Network]:
    """Of networks that differ in depth alone, the shallowest with so many blocks."""
    enough = [n for n in networks if n.shape.depth >= depth]
    flipped = [Network(n.shape._replace(depth=-n.shape.depth), n.state, n.values) for n in enough]
    return [
        Network(n.shape._replace(depth=-n.shape.depth), n.state, n.values) for n in deepest(flipped)
    ]


def by_sign(networks: list[Network], excess: Callable[[float], float]) -> str:
    """Whether ``excess`` of a network's values is positive, network by network."""
    return together(
        {n.name: sign_verdict([excess(v) for v in n.values.values()], 0) for n in networks}
    )


def listed(networks: list[Network], level: float, *, geometric: bool = True) -> str:
    """The networks with their values, as words."""
    parts = [f"{n.name}: {words(n.values.values(), level, geometric=geometric)}" for n in networks]
    return "; ".join(parts) or "–"


def decays_by_published_rate(e: Evidence) -> Claim:
    networks = deepest(e.networks("gradient_rate", residual=False))
    margin = math.log((PUBLISHED_RATE + PRINTED) / PUBLISHED_RATE)
    verdicts = {
        n.name: margin_verdict(
            [log(v) - math.log(PUBLISHED_RATE) for v in n.values.values()], margin, 0
        )
        for n in networks
    }
    return Claim(
        "decay_rate",
        "Without residual connections each layer multiplies the gradient by about 0.8.",
        "factor of the gradient's norm per block towards the input, within "
        f"{PRINTED / PUBLISHED_RATE:.0%} of 0.8, at the greatest depth",
        "0.8, drawn",
        listed(networks, e.level),
        together(verdicts),
    )


def vanishes_without_residuals(e: Evidence) -> Claim:
    networks = from_depth(e.networks("gradient_kept", residual=False), VANISHES_BY)
    return Claim(
        "vanishes",
        "Without residual connections the gradient is near zero after 10 to 15 layers.",
        f"its norm at the second block is below {VANISHED} of that at the last, in the shallowest "
        f"network of {VANISHES_BY} blocks or more",
        "0.8^10 to 0.8^15: 0.11 to 0.035, drawn",
        listed(networks, e.level),
        by_sign(networks, lambda v: math.log(VANISHED) - log(v)),
    )


def stays_with_residuals(e: Evidence) -> Claim:
    of = [n for s in STATES for n in e.networks("gradient_kept", residual=True, state=s)]
    networks, margin = deepest(of), -math.log(KEEPS)
    verdicts = {
        n.name: margin_verdict([log(v) for v in n.values.values()], margin, 0) for n in networks
    }
    return Claim(
        "stays",
        "With residual connections the gradient stays stable down to the first layers.",
        f"its norm at the second block is {KEEPS} to {1 / KEEPS:.2f} of that at the last, at the "
        "greatest depth",
        "0.7 + 0.3 x 0.9^k, from 0.7 to 1 everywhere, drawn",
        listed(networks, e.level),
        together(verdicts),
    )


def _resolved(least: Network, most: list[Network]) -> Network:
    """Without the models of which a value of 0 may stand for one that is near 1."""
    same = [n.values for n in most if (n.shape, n.state) == (least.shape, least.state)]
    largest = same[0] if same else {}
    there = {
        seed: value
        for seed, value in least.values.items()
        if value > 0 or RESOLUTION * largest.get(seed, 0) < NEAR_ONE
    }
    return Network(least.shape, least.state, there)


def identity_passes_all(e: Evidence) -> Claim:
    least, most = (
        deepest([n for s in STATES for n in e.networks(k, residual=True, state=s)])
        for k in ("smallest", "largest")
    )
    known = [_resolved(n, most) for n in least]
    return Claim(
        "identity_path",
        "dy/dx = 1 + dF/dx: the identity path passes the gradient on, however small dF/dx is.",
        "dy/dx is a matrix, I + J; the least singular value of the measured blocks but the first "
        f"is above {NEAR_ONE}, at the greatest depth; one below {RESOLUTION:.0%} of the largest "
        f"counts as 0, or as unknown where that exceeds {NEAR_ONE}",
        "1 + a scalar; no number",
        f"least: {listed(least, e.level, geometric=False)}. Largest: {listed(most, e.level)}",
        by_sign(known, lambda v: v - NEAR_ONE),
    )


def stays_healthy(e: Evidence) -> Claim:
    networks = [n for s in STATES for n in e.networks("stream_growth", residual=True, state=s)]
    networks = [n for n in deepest(networks) if n.shape.placement != "none"]
    return Claim(
        "healthy_range",
        "LayerNorm keeps the numbers in a healthy range, whatever the depth.",
        f"RMS of the stream after the last block below {HEALTHY:g} times that after the first, at "
        "the greatest depth",
        "no number",
        listed(networks, e.level),
        by_sign(networks, lambda v: math.log(HEALTHY) - log(v)),
    )
