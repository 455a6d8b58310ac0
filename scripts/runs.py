"""Rule runs: metrics and curves of all runs as tidy tables, and each arm's mean with interval."""

import json
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.recipe import Strict
from normscope.stats import estimate
from normscope.tables import run_key, write_csv


class Flags(Strict):
    """Collect the losses of all runs."""

    metrics: CliPositionalArg[list[Path]] = Field(description="metrics.json of every run")
    baseline: str = Field(description="arm-placement that the others are compared with")
    level: float = Field(description="confidence level")
    out: Path = Field(description="directory for runs.csv, curves.csv, arms.csv")


def compare(runs: pd.DataFrame, baseline: str, level: float) -> pd.DataFrame:
    """A row per arm and placement: n, mean, interval; difference to the baseline over shared seeds.

    The intervals of the differences hold together at ``level``: Bonferroni over those with n > 1.
    """
    name = runs["arm"] + "-" + runs["placement"]
    reference = runs[name == baseline].set_index("seed")["val_loss"].dropna()
    pairs = runs[runs["seed"].isin(reference.index) & (name != baseline)].dropna(subset="val_loss")
    compared = int((pairs.groupby(["arm", "placement"]).size() > 1).sum())
    joint = 1 - (1 - level) / max(compared, 1)
    rows = []
    for (arm, placement), group in runs.groupby(["arm", "placement"], sort=False):
        loss = group.set_index("seed")["val_loss"].dropna()
        row: dict = {"arm": arm, "placement": placement}
        row |= {"n": len(loss), "diverged": int(group["diverged_at"].notna().sum())}
        if len(loss):
            e = estimate(list(loss), level)
            row |= {"mean": e.mean, "low": e.low, "high": e.high}
        paired = (loss - reference).dropna()
        row["pairs"] = len(paired)
        if len(paired) and f"{arm}-{placement}" != baseline:
            d = estimate(list(paired), joint)
            row |= {"difference": d.mean, "difference_low": d.low, "difference_high": d.high}
        rows.append(row)
    columns = (
        "arm placement n diverged mean low high pairs difference difference_low difference_high"
    )
    return pd.DataFrame(rows, columns=columns.split())


def main() -> None:
    flags = CliApp.run(Flags)
    runs, curves = [], []
    for directory in (path.parent for path in flags.metrics):
        key = run_key(directory.name)
        runs.append(key | json.loads((directory / "metrics.json").read_text()))
        curves.append(pd.read_csv(directory / "curve.csv").assign(**key))
    table = pd.DataFrame(runs).astype(
        {"val_loss": float, "train_loss": float, "diverged_at": "Int64"}
    )
    curve = pd.concat(curves, ignore_index=True)
    keys = ["arm", "placement", "seed"]
    write_csv(flags.out / "runs.csv", table[keys + [c for c in table if c not in keys]])
    write_csv(flags.out / "curves.csv", curve[keys + [c for c in curve if c not in keys]])
    write_csv(flags.out / "arms.csv", compare(table, flags.baseline, flags.level))


if __name__ == "__main__":
    report(main)
