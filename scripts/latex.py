"""Rule latex: booktabs tables, and every number as a macro, for a paper to input."""

import math
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.depth.claims import significant_or_tiny as of_size
from normscope.depth.grid import Shape
from normscope.depth.summary import rate_table, scratch_table, training_table
from normscope.depth.tables import SHAPE
from normscope.errors import report
from normscope.files import write_text
from normscope.jacobian.summary import cost_table, layer_table
from normscope.jacobian.tables import VARIED
from normscope.pretrained import summary as pretrained
from normscope.rates import rate_name
from normscope.recall.summary import cell_table, factor_table
from normscope.recipe import Strict
from normscope.summary import gain_table, loss_table
from normscope.tables import latex, macro, number, records, significant

PRETRAINED = {  # table of results/pretrained: name in the paper, how it is made
    "by_model": ("pretrained", pretrained.gain_table),
    "by_norm": ("norms", pretrained.norm_table),
    "h25": ("h25", pretrained.h25_table),
    "twins": ("twins", pretrained.twin_table),
    "sensitivity": ("sensitivity", pretrained.sensitivity_table),
}


class Flags(Strict):
    """Write tables/*.tex and numbers.tex."""

    arms: Path
    gains: Path
    cells: Path
    factors: Path
    jacobian: Path
    depth: Path
    textbook: Path
    pretrained: Path
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
    by_shape = pd.read_csv(flags.depth / "by_shape.csv")
    trained = pd.read_csv(flags.depth / "trainability.csv")
    scratch = pd.read_csv(flags.textbook / "scratch.csv")
    of_models = {name: pd.read_csv(flags.pretrained / f"{name}.csv") for name in PRETRAINED}
    for name, table in (
        ("jacobian", layer_table(layers, flags.published)),
        ("surrogates", cost_table(costs, flags.corrected)),
        ("depth", rate_table(by_shape)),
        ("trainability", training_table(trained)),
        ("scratch", scratch_table(scratch)),
        *((PRETRAINED[name][0], PRETRAINED[name][1](of_models[name])) for name in PRETRAINED),
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
    lines += [
        macro((str(Shape._make(getattr(r, k) for k in SHAPE)), r.state, r.measure), of_size(r.mean))
        for r in records(by_shape)
    ]
    lines += [
        macro((r.model, r.experiment, "last gain"), number(math.exp(r.log_gain)))
        for r in records(of_models["by_model"])
    ]
    write_text(flags.out / "numbers.tex", "\n".join(lines))


if __name__ == "__main__":
    report(main)
