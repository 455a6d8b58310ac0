"""The tutorial's statements on residual connections and placement, each beside a measurement.

Its curves are drawn, not measured, and its statements come without a size of network, a start or a
learning rate: a statement is therefore tested in every kind of network that the tables have
(placement, start, trained or not), at the depth that its test names, and a verdict says for which
it holds. Models of one seed are pairs; seeds enough for an exact test are needed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from normscope.ledger.case import Case, exp, log, of_units
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.paper.words import significant_or_tiny
from normscope.statistics.estimate import estimate
from normscope.studies.depth.measures import INITS, NORM, PLACEMENTS, RESOLUTION, STATES
from normscope.studies.depth.recipe import Kept, Shape

VANISHES_BY = 10  # "near zero by layer 10 to 15"
LEARNED = 0.1  # nats below the loss of character frequencies from which a model has learned


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
    mean, low, high = (exp(v) if geometric else v for v in (e.mean, e.low, e.high))
    if e.n < 2:
        return significant_or_tiny(mean)
    return f"{significant_or_tiny(mean)} [{significant_or_tiny(low)}, {significant_or_tiny(high)}]"


@dataclass(frozen=True)
class Evidence:
    """The workflow's tables.

    Args:
        rates: rates.csv, a row a model.
        losses: losses.csv, a row a trained model.
        kept: the schedule of the trained models in ``rates``.
        level: confidence level.
        entries: the ledger's.
    """

    rates: pd.DataFrame
    losses: pd.DataFrame
    kept: Kept
    level: float
    entries: Mapping[str, Entry]

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


def by_network(entry: Entry, networks: list[Network], level: float) -> dict[str, Case]:
    """The entry's test of a network's values, network by network."""
    return {n.name: of_units(entry, list(n.values.values()), level=level) for n in networks}


def listed(networks: list[Network], level: float, *, geometric: bool = True) -> str:
    """The networks with their values, as words."""
    parts = [f"{n.name}: {words(n.values.values(), level, geometric=geometric)}" for n in networks]
    return "; ".join(parts) or "–"


def decays_by_published_rate(e: Evidence) -> Claim:
    return _of_networks(
        e,
        "decay_rate",
        deepest(e.networks("gradient_rate", residual=False)),
        "0.8, drawn",
    )


def vanishes_without_residuals(e: Evidence) -> Claim:
    return _of_networks(
        e,
        "vanishes",
        from_depth(e.networks("gradient_kept", residual=False), VANISHES_BY),
        "0.8^10 to 0.8^15: 0.11 to 0.035, drawn",
    )


def stays_with_residuals(e: Evidence) -> Claim:
    of = [n for s in STATES for n in e.networks("gradient_kept", residual=True, state=s)]
    return _of_networks(
        e, "stays", deepest(of), "0.7 + 0.3 x 0.9^k, from 0.7 to 1 everywhere, drawn"
    )


def _of_networks(e: Evidence, key: str, networks: list[Network], published: str) -> Claim:
    """A statement on a factor, tested in every network."""
    entry = e.entries[key]
    cases = by_network(entry, networks, e.level)
    return Claim(key, entry, published, listed(networks, e.level), cases)


def _resolved(least: Network, most: list[Network], near_one: float) -> Network:
    """Without the models of which a value of 0 may stand for one that is near 1."""
    same = [n.values for n in most if (n.shape, n.state) == (least.shape, least.state)]
    largest = same[0] if same else {}
    there = {
        seed: value
        for seed, value in least.values.items()
        if value > 0 or RESOLUTION * largest.get(seed, 0) < near_one
    }
    return Network(least.shape, least.state, there)


def identity_passes_all(e: Evidence) -> Claim:
    entry = e.entries["identity_path"]
    least, most = (
        deepest([n for s in STATES for n in e.networks(k, residual=True, state=s)])
        for k in ("smallest", "largest")
    )
    known = [_resolved(n, most, entry.limit) for n in least]
    return Claim(
        "identity_path",
        entry,
        "1 + a scalar; no number",
        f"least: {listed(least, e.level, geometric=False)}. Largest: {listed(most, e.level)}",
        by_network(entry, known, e.level),
    )


def stays_healthy(e: Evidence) -> Claim:
    networks = [n for s in STATES for n in e.networks("stream_growth", residual=True, state=s)]
    networks = [n for n in deepest(networks) if n.shape.placement != "none"]
    return _of_networks(e, "healthy_range", networks, "no number")
