"""Rule latex: booktabs tables, and every number as a macro, for a paper to input."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.files import write_text
from normscope.jacobian.summary import cost_table, layer_table
from normscope.jacobian.tables import VARIED
from normscope.rates import rate_name
from normscope.recall.summary import cell_table, factor_table
from normscope.recipe import Strict
from normscope.summary import gain_table, loss_table
from normscope.tables import latex, macro, number, records, significant


class Flags(Strict):
    """Write tables/*.tex and numbers.tex."""

    arms: Path
    gains: Path
    cells: Path
    factors: Path
    jacobian: Path
    published: str = Field(description="the protocol of the published script")
    corrected: str = Field(description="the protocol that surrogates are compared under")
    out: Path


def macros(table: pd.DataFrame, columns: dict[str, str]) -> list[str]:
    r"""``\normscopeLayernormPreLoss`` and the like, where there is a number."""
    return [
        macro((row["arm"], row["placement"], word), number(row[column]))
        for row in table.to_dict("records")
        for column, word in columns.items()
        if pd.notna(row[column])
    ]


def main() -> None:
    flags = CliApp.run(Flags)
    arms, gains = pd.read_csv(flags.arms), pd.read_csv(flags.gains)
    write_text(flags.out / "tables" / "loss.tex", latex(loss_table(arms)))
    write_text(flags.out / "tables" / "gain.tex", latex(gain_table(gains)))
    lines = macros(arms, {"mean": "loss", "low": "loss low", "high": "loss high"})
    lines += macros(gains, {"first": "first gain", "later": "later gain", "last": "last gain"})
    cells, factors = pd.read_csv(flags.cells), pd.read_csv(flags.factors)
    for task in cells["task"].unique():
        table = latex(cell_table(cells, task))
        write_text(flags.out / "tables" / f"recall_{task}.tex", table)
    if factors.empty:
        effects = pd.DataFrame({"contrast": ["none: the grid is not crossed"]})
    else:
        effects = factor_table(factors)
    write_text(flags.out / "tables" / "factors.tex", latex(effects))
    layers = pd.read_csv(flags.jacobian / "layers_by_cell.csv")
    costs = pd.read_csv(flags.jacobian / "costs.csv")
    for name, table in (
        ("jacobian", layer_table(layers, flags.published)),
        ("surrogates", cost_table(costs, flags.corrected)),
    ):
        write_text(flags.out / "tables" / f"{name}.tex", latex(table))
    lines += [
        macro((*(getattr(r, key) for key in VARIED), "cost"), number(r.mean))
        for r in records(costs.dropna(subset="mean"))
    ]
    lines += [
        macro((r.task, r.arm, rate_name(r.learning_rate), r.measure), significant(r.mean))
        for r in records(cells.dropna(subset="mean"))
    ]
    write_text(flags.out / "numbers.tex", "\n".join(lines))


if __name__ == "__main__":
    report(main)
