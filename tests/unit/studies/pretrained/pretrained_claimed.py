"""Tables of residual gain in which the published statements would hold, for tests."""

import gc
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import readings
import statements
from normscope.verdicts.claim import Evidence, Finding
from normscope.verdicts.judgement import Judgement
from processes import ROOT

from normscope.statistics.inference import proportion
from normscope.studies.pretrained.measures import METRICS, POSITIONS, VALIDATION
from normscope.studies.pretrained.tables import TABLES

REFERENCES = pd.read_csv(ROOT / "data" / "reference_gains.csv")
# the readings of published numbers and pretrained models; contrasts test the others
READINGS = {
    "dampens": "every_model",
    "consistent": "threshold",
    "norms_decide": "every_model",
    "inverts": "published_models",
    "follows_entropy": "published_models",
    "true_last_block": "ratio",
    "h25": "penultimate",
}
KEYS = tuple(READINGS)
Rows = Sequence[Mapping[str, Any]] | pd.DataFrame


def model(name: str, log_gain: float, norm: str = "LayerNorm", **changes: Any) -> dict[str, Any]:
    """A row of by_model: a measured base model, clearly on one side of 1."""
    is_below = log_gain < 0
    row = {"experiment": "measured", "model": name, "family": name, "norm": norm, "n": 25}
    row |= {"mean": math.exp(log_gain), "t": log_gain * 100, "below_one": 25 * is_below}
    row |= {"p_one_sided": 0.001 if is_below else 0.999}
    row |= {"status": "CONFIRMED" if is_below else "REJECTED"}
    row |= {"log_gain": log_gain, "low": log_gain - 0.01, "high": log_gain + 0.01, "p": 1e-4}
    row |= {"r_deviation": 0.1, "p_deviation": 0.6, "r": 0.1, "r_without_nonsense": 0.125}
    return row | changes


def published(changes: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The seven published models, each with its norm on the side of 1 that was published.

    Args:
        changes: values of a model, by its name.
    """
    rows = []
    for name in VALIDATION:
        is_layernorm = name.startswith(("gpt2", "pythia"))
        gain = (-0.2, "LayerNorm") if is_layernorm else (0.2, "RMSNorm")
        study = "gpt2" if name.startswith("gpt2") else "benchmark"
        rows.append(model(name, *gain, experiment=study) | dict((changes or {}).get(name, {})))
    return rows


def compared(**changes: Any) -> dict[str, Any]:
    """A row of by_norm: families with LayerNorm and with RMSNorm, clearly apart."""
    row = {"comparison": "measured, else published", "unit": "family", "layernorm": 5}
    row |= {"rmsnorm": 5, "difference": 0.4, "low": 0.3, "high": 0.5, "p": 0.01, "smallest": 0.01}
    return row | changes


def judged(right: int, n: int, **changes: Any) -> dict[str, Any]:
    """A row of h25: how often H25 is right in the study of models of several labs."""
    share = proportion(right, n, 0.95)
    row = {"experiment": "h25", "metric": "gain_hidden_states", "n": n, "right": right}
    row |= {"families": 7, "share": share.mean, "low": share.low, "high": share.high}
    row |= {"decided": n, "decided_right": right}
    row |= {"decided_low": share.low, "decided_high": share.high}
    return row | changes


def predicted(*right: bool, **changes: Any) -> list[dict[str, Any]]:
    """Rows of h25_models: gains above 1, and for each whether H25 predicts that."""
    row = {"experiment": "h25", "metric": "gain_hidden_states", "n": 25, "p": 1e-4}
    row |= {"gain": 1.2, "low": 1.1, "high": 1.3} | changes
    sides = {True: "above 1", False: "below 1"}
    return [row | {"model": f"m{i}", "predicted": sides[v]} for i, v in enumerate(right)]


def cells(name: str, *, bos: Sequence[str] = ("off",), **logs: float) -> pd.DataFrame:
    """Rows of sensitivity of a model whose tokenizer adds no BOS; log-gains of 0.1 by default."""
    rows = [
        {"model": name, "bos": policy, "positions": positions, "metric": metric}
        | {"log_gain": logs.get(metric, 0.1), "usual": policy == "off"}
        for policy in bos
        for positions in POSITIONS
        for metric in METRICS
    ]
    return pd.DataFrame(rows, columns=TABLES["sensitivity"].names)


def trained_models(placement: str = "pre", **r: Sequence[float]) -> pd.DataFrame:
    """Trained models of the small protocol: r of entropy and abs(gain - 1) over seeds, by arm."""
    rows = [
        {"protocol": "small", "placement": placement, "learning_rate": 0.003, "arm": arm}
        | {"seed": seed, "diverged_at": math.nan, "r_entropy_deviation": value}
        for arm, values in r.items()
        for seed, value in enumerate(values)
    ]
    columns = "protocol placement learning_rate arm seed diverged_at r_entropy_deviation".split()
    return pd.DataFrame(rows, columns=columns)


def evidence(*measured: Mapping[str, Any], **tables: Rows) -> Evidence:
    """The seven published models and measured ones.

    Args:
        tables: rows of tables by name; ``published`` replaces the seven models, ``chosen`` is
            of the main study.
    """
    gc.freeze()  # statsmodels collects garbage at every correction, longer than all the rest
    rows: dict[str, Any] = {
        "by_model": [*tables.pop("published", published()), *measured],
        "by_norm": [compared()],
        "h25": [judged(8, 16)],
        "h25_models": [],
        "observations": [],
        "sensitivity": cells("")[:0].astype({"usual": bool}),
        "references": REFERENCES,
    }
    chosen = tables.pop("chosen", trained_models())
    made = {
        f"pretrained.{name}": pd.DataFrame(table, columns=TABLES[name].names)
        for name, table in (rows | tables).items()
    }
    return statements.evidence({"main.chosen": pd.DataFrame(chosen)} | made)


def finds(
    key: str, *measured: Mapping[str, Any], reading: str | None = None, **tables: Rows
) -> Finding:
    """What the test of a reading finds, by default that of ``READINGS``."""
    return readings.finding(key, reading or READINGS[key], evidence(*measured, **tables))


def judgement(key: str, *names: str, **tables: Rows) -> Judgement:
    """The line of a statement in its own ledger, with all of its readings if none is named."""
    return readings.judgement_on(key, evidence(**tables), *names)
