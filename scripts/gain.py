"""Rule gain: the residual gains of all runs as one tidy table, and by depth with intervals."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.recipe import Strict
from normscope.stats import estimate
from normscope.tables import run_key, write_csv


class Flags(Strict):
    """Collect the residual gains of all runs."""

    gains: CliPositionalArg[list[Path]] = Field(description="one CSV a run")
    level: float = Field(description="confidence level")
    out: Path = Field(description="directory for gain.csv, gain_by_depth.csv, gain_by_arm.csv")


def by_depth(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Means over positions in each run, then over runs; position 0 sees itself only: it is apart.

    ``norm`` is a geometric mean, so that ``ln norm`` and ``log_gain`` are means of one kind.
    """
    table = table.assign(
        positions=np.where(table["position"] == 0, "first", "later"), log_norm=np.log(table["norm"])
    )
    where = ["arm", "placement", "positions", "depth", "site"]
    runs = table.groupby([*where, "seed"], sort=False)[["log_norm", "log_gain"]].mean()
    rows = []
    for key, group in runs.groupby(where, sort=False):
        row: dict = dict(zip(where, key, strict=True))
        for name in ("log_norm", "log_gain"):
            values = [v for v in group[name] if np.isfinite(v)]
            if values:
                e = estimate(values, level)
                row |= {"n": e.n, name: e.mean, f"{name}_low": e.low, f"{name}_high": e.high}
        rows.append(row)
    columns = "n log_norm log_norm_low log_norm_high log_gain log_gain_low log_gain_high"
    return pd.DataFrame(rows, columns=[*where, *columns.split()])


def by_arm(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Gains of the first block, of the later ones and of the last, as factors with intervals.

    Geometric means over positions but the first, over blocks (later: the gain of one block) and
    over runs. The first block lifts the embedding, which starts small, so it stands alone.
    """
    blocks = table[table["site"].str.startswith("block_") & (table["position"] > 0)]
    depth = blocks["depth"]
    parts = {
        "first": blocks[depth == 1],
        "later": blocks[depth > 1],
        "last": blocks[depth == depth.max()],
    }
    rows = []
    for (arm, placement), _ in blocks.groupby(["arm", "placement"], sort=False):
        row: dict = {"arm": arm, "placement": placement}
        for name, part in parts.items():
            of_arm = part[(part["arm"] == arm) & (part["placement"] == placement)]
            values = [v for v in of_arm.groupby("seed")["log_gain"].mean() if np.isfinite(v)]
            if values:
                e = estimate(values, level)
                low, high = np.exp(e.low), np.exp(e.high)
                row |= {"n": e.n, name: np.exp(e.mean), f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    bounds = [f"{name}{suffix}" for name in parts for suffix in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["arm", "placement", "n", *bounds])


def main() -> None:
    flags = CliApp.run(Flags)
    parts = [pd.read_csv(path).assign(**run_key(path.stem)) for path in flags.gains]
    table = pd.concat(parts, ignore_index=True)
    keys = ["arm", "placement", "seed"]
    write_csv(flags.out / "gain.csv", table[keys + [c for c in table if c not in keys]])
    write_csv(flags.out / "gain_by_depth.csv", by_depth(table, flags.level))
    write_csv(flags.out / "gain_by_arm.csv", by_arm(table, flags.level))


if __name__ == "__main__":
    report(main)
