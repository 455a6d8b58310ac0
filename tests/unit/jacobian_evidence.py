"""Evidence for claims under which each holds as planted, for tests."""

import functools
import itertools
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from jacobian_recipes import LAYERS, cell, frame, layer
from processes import SCRIPTS
from test_jacobian_grid import grid

from normscope.ledger.case import Case
from normscope.ledger.claim import Claim
from normscope.ledger.entry import load
from normscope.studies.jacobian import claims as judged
from normscope.studies.jacobian.claims import Evidence
from normscope.studies.jacobian.measures import MEASURES
from normscope.studies.jacobian.tables import KEPT, PREDICTORS, REPLACED, VARIED

NAN = math.nan
ENTRIES = load(SCRIPTS.parent / "data" / "claims.yaml").claims
P, C = "published", "small_2"  # the protocols of the grid
GRID = grid(**{"protocols.small_2.model.n_embd": 16})
NAMES = ("blocks.0.attention.before", "blocks.0.mlp.before", "final_norm")
PREDICTIONS = [*REPLACED, "predictor", "n", "seeds", "diverged", "rho"]
PICKED = [*VARIED, "seed", "learning_rate", "val_loss", "diverged"]  # rows of chosen
WAS, NOW = "own", "verdict"

KEYS = (
    "softmax_costs_more",
    "radial_is_larger",
    "shares_predict_costs",
    "cosines_tell_harm",
    "norms_are_alike",
    "formula_is_exact",
    "shares_give_cosines",
    "signal_is_gradient",
)
COSTS_MORE, RADIAL, PREDICT, HARM, ALIKE, FORMULA, AGREE, GRADIENT = range(8)
CLAIMS = range(8)
LOSSES_ONLY = [COSTS_MORE, PREDICT, HARM, ALIKE]  # the script shows no loss
PUBLISHED_TOO = [RADIAL, FORMULA, AGREE, GRADIENT]
OF_SEEDS = [COSTS_MORE, RADIAL, PREDICT, HARM, ALIKE, GRADIENT]
DECIDED = {*CLAIMS} - {PREDICT}  # a correlation over settings decides nothing

Values = float | list[float]
Planted = Sequence[tuple[dict[str, str], dict[str, Values]]]
Costs = Mapping[str, Sequence[float | None]]

# cos = sqrt((1 - 0.1 - r)/0.9): 0.8 and 0.9 as published, 0.96 and 0.98 corrected
SHARES: Planted = (
    ({}, {"r_mean": 0.1, "error_identity": 1e-16}),
    ({"variant": "published", "attention": "softmax"}, {"r_radial": 0.324}),
    ({"variant": "published", "attention": "sigmoid"}, {"r_radial": 0.171}),
    ({"variant": "published", "attention": "softmax"}, {"cos_center_scale": 0.8}),
    ({"variant": "published", "attention": "sigmoid"}, {"cos_center_scale": 0.9}),
    ({"variant": "corrected", "attention": "softmax"}, {"r_radial": 0.07056}),
    ({"variant": "corrected", "attention": "sigmoid"}, {"r_radial": 0.03564}),
    ({"variant": "corrected", "attention": "softmax"}, {"cos_center_scale": 0.96}),
    ({"variant": "corrected", "attention": "sigmoid"}, {"cos_center_scale": 0.98}),
    ({"variant": "corrected"}, {"error_closed_form": 1e-12, "error_without_gain": 1e-12}),
    ({"feedback": "fa", "variant": "corrected"}, {"alignment": 0.99}),
)
SMALL, LARGE = [0.2] * 6, [0.5] * 6
ALL, IN_BLOCKS = "softmax fa center_scale all", "softmax fa center_scale blocks"
COSTS: Costs = {
    ALL: LARGE,
    IN_BLOCKS: LARGE,
    "sigmoid fa center_scale all": SMALL,
}
MARGIN = 1.0  # of all exact models
UNIGRAM = 99.0  # far above all losses


def layers(*planted: Any, now: int = 6, arm: str = "layernorm") -> pd.DataFrame:
    """layers.csv of one published seed and some corrected ones; later plants lie over earlier."""
    rows = []
    of = itertools.product(
        ((P, 1), (C, now)), ("softmax", "sigmoid"), ("fa", "backprop"), ("corrected", "published")
    )
    for (protocol, n), attention, feedback, variant in of:
        for seed, (index, name) in itertools.product(range(n), enumerate(NAMES)):
            keys = {"protocol": protocol, "attention": attention, "feedback": feedback}
            row = layer(seed, name, {}, arm=arm, variant=variant, index=index, **keys)
            for where, values in (*SHARES, *planted):
                if all(row[k] == v for k, v in where.items()):
                    row |= {k: v[seed] if isinstance(v, list) else v for k, v in values.items()}
            rows.append(row)
    words = [column for column, value in rows[0].items() if isinstance(value, str)]
    # together by type, rows are selected in half the time
    return frame(rows, LAYERS).astype(dict.fromkeys(words, object)).copy()


def exact_loss(seed: int, n: int, margin: float = MARGIN) -> float:
    """Of n losses 2 +- a, as many above as below: 2 sd, a^2 n / (n - 1) the square, is a margin."""
    return 2 + margin / 2 * math.sqrt((n - 1) / n) * (1 if seed % 2 else -1)


def models(costs: Costs, margin: float = MARGIN, protocol: str = C) -> pd.DataFrame:
    """expected.csv by seed; no cost means a divergence; 2 sd of the exact losses are the margin."""
    rows = []
    for name, of_seeds in costs.items():
        attention, feedback, rule, place = name.split()
        for seed, cost in enumerate(of_seeds):
            row = cell(protocol=protocol, attention=attention, feedback=feedback)
            row |= {"norm_backward": rule, "surrogates_in": place, "seed": seed}
            exact = exact_loss(seed, len(of_seeds), margin)
            loss = NAN if cost is None else exact + cost
            values = {"val_loss": loss, "val_loss_exact": exact, "cost": loss - exact}
            rows.append(row | values | {"diverged": cost is None})
    return pd.DataFrame(rows, columns=[*KEPT, *PREDICTORS])


def picked(now: int = 6, lost: Sequence[dict[str, str]] = (), margin: float = MARGIN):
    """chosen.csv of the exact models of ``layers``; the last seed of what is lost diverged."""
    rows = []
    of = itertools.product(((P, 1), (C, now)), ("softmax", "sigmoid"), ("fa", "backprop"))
    for (protocol, n), attention, feedback in of:
        for seed in range(n):
            row = cell(protocol=protocol, attention=attention, feedback=feedback)
            gone = seed == n - 1 and any(where.items() <= row.items() for where in lost)
            loss = NAN if gone else exact_loss(seed, n, margin)
            rows.append(row | {"seed": seed, "val_loss": loss, "diverged": gone})
    return pd.DataFrame(rows, columns=PICKED)


def prediction(rho: float = 0.9, n: int = 6, **changes: Any) -> dict[str, Any]:
    row = dict(zip(REPLACED, (C, "center_scale", "all"), strict=True))
    row |= {"predictor": "left_in_blocks", "n": n, "rho": rho}
    return row | {"seeds": 6, "diverged": 0} | changes


def evidence(
    *planted: Any, costs: Costs | None = None, rows: Sequence[Any] | None = None, **changes: Any
) -> Evidence:
    """Tables under which all claims hold that can, but for what is planted."""
    values: dict[str, Any] = {
        "grid": GRID,
        "layers": layers(*planted),
        "picked": picked(),
        "models": models({**COSTS, **(costs or {})}),
        "predictions": pd.DataFrame([prediction()] if rows is None else rows, columns=PREDICTIONS),
        "unigram": UNIGRAM,
        "level": 0.95,
        "entries": ENTRIES,
        "margin_sds": 2.0,
    }
    return Evidence(**values | changes)


@functools.cache
def told(of: bytes) -> list[Claim]:
    return judged.claims(pickle.loads(of))


def claims(of: Evidence) -> list[Claim]:
    """The same tables are judged once."""
    return told(pickle.dumps(of))


def column(name: str, of: Evidence) -> list[str]:
    """Of every claim: its words, or a verdict."""
    return [getattr(claim, name) for claim in claims(of)]


def reading(reads: str, of: Evidence, name: str = NOW) -> set[int]:
    """The claims with a verdict."""
    return {claim for claim, found in enumerate(column(name, of)) if found == reads}


def verdict(claim: int, *planted: Any, name: str = NOW, **changes: Any) -> str:
    return column(name, evidence(*planted, **changes))[claim]


def words(claim: int, *planted: Any, **changes: Any) -> str:
    return claims(evidence(*planted, **changes))[claim].corrected


def case(claim: int, *planted: Any, **changes: Any) -> Case:
    """The one test of a claim."""
    (found,) = claims(evidence(*planted, **changes))[claim].cases.values()
    return found


BLOCKS = {"protocol": C, "variant": "corrected", "feedback": "fa", "place": "block"}
OTHER = {**BLOCKS, "attention": "sigmoid"}
WAS_BLOCKS = {"protocol": P, "variant": "published", "feedback": "fa"}
# any layer counts
ONE = {"layer": NAMES[1], "attention": "sigmoid", "feedback": "backprop", "variant": "corrected"}
FAILS: dict[int, Any] = {  # what the layers show
    RADIAL: (OTHER, {"r_radial": 0.09, "cos_center_scale": math.sqrt(0.9)}),
    FORMULA: ({"protocol": C, **ONE}, {"error_without_gain": 2e-9}),
    AGREE: ({"protocol": C, **ONE}, {"cos_center_scale": 0.9811}),
    GRADIENT: (BLOCKS, {"alignment": 0.85}),
}
SELECTION = "undecided: runs diverged, and the others are a selection"


def without_layernorm() -> dict[str, Any]:
    """The section keeps the rows of one arm."""
    return {
        "layers": layers()[:0],
        "picked": picked()[:0],
        "models": models(COSTS)[:0],
        "predictions": pd.DataFrame([], columns=PREDICTIONS),
    }


def from_files() -> dict[str, Any]:
    """As pandas reads a header without a row: no column has a type."""
    return {
        "layers": pd.DataFrame([], columns=LAYERS),
        "picked": pd.DataFrame([], columns=PICKED),
        "models": pd.DataFrame([], columns=[*KEPT, *PREDICTORS]),
        "predictions": pd.DataFrame([], columns=PREDICTIONS),
    }


def all_diverged() -> dict[str, Any]:
    lost = models({name: [None] * 6 for name in COSTS}).assign(val_loss_exact=NAN)
    table = layers()
    table = table[table["variant"] == "corrected"].assign(**dict.fromkeys(MEASURES, NAN))
    rows = [prediction(NAN, 0, predictor=k, seeds=0, diverged=6) for k in PREDICTORS]
    return {
        "layers": table,
        "picked": picked().assign(val_loss=NAN, diverged=True),
        "models": lost,
        "predictions": pd.DataFrame(rows, columns=PREDICTIONS),
    }


def no_surrogate() -> dict[str, Any]:
    return from_files() | {"layers": layers(), "picked": picked()}


def no_norm_layer() -> dict[str, Any]:
    return from_files() | {"picked": picked(), "models": models(COSTS)}


EMPTY = [without_layernorm, from_files, all_diverged, no_surrogate, no_norm_layer]
