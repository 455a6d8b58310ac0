"""Rule gain: the residual gains of all runs as one tidy table, and by depth with intervals."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.paper.words import run_key
from normscope.schema import Strict
from normscope.studies.main.tables import by_arm, by_depth


class Flags(Strict):
    """Collect the residual gains of all runs."""

    gains: CliPositionalArg[list[Path]] = Field(description="one CSV a run")
    runs: Path = Field(description="runs.csv: which runs diverged")
    level: float = Field(description="confidence level")
    out: Path = Field(description="directory for gain.csv, gain_by_depth.csv, gain_by_arm.csv")


def main() -> None:
    flags = CliApp.run(Flags)
    parts = [pd.read_csv(path).assign(**run_key(path.stem)) for path in flags.gains]
    table = pd.concat(parts, ignore_index=True)
    keys = ["arm", "placement", "seed"]
    write_csv(flags.out / "gain.csv", table[keys + [c for c in table if c not in keys]])
    # a model that diverged is in gain.csv and in no mean
    lost = pd.read_csv(flags.runs).set_index(keys)["diverged_at"].notna()
    kept = table[~lost.loc[pd.MultiIndex.from_frame(table[keys])].to_numpy()]
    write_csv(flags.out / "gain_by_depth.csv", by_depth(kept, flags.level))
    write_csv(flags.out / "gain_by_arm.csv", by_arm(kept, flags.level))


if __name__ == "__main__":
    report(main)
