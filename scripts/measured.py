"""Rule measured: all measured models, one below the other; gains by protocol, and by block."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.hub.prompts import SET, Prompt, PromptsError, read_prompts
from normscope.io.csvfile import write_csv
from normscope.io.stored import read
from normscope.schema import Strict
from normscope.studies.pretrained.grid import Collected
from normscope.studies.pretrained.measures import GAIN_COLUMNS, NORM_COLUMNS
from normscope.studies.pretrained.tables import COUNTS, by_layer, read_table, sensitivity

FACTS = (
    "class norm n_layers n_embd n_heads n_kv_heads grouped_queries head_dim rho rho_as_published "
    "parameters stored computed streamed device threads source commit tokenizer_adds_bos missing"
).split()


class Flags(Strict):
    """Collect the measurements of all pretrained models."""

    models: str = Field(description="the models of the configuration and resamples, as JSON")
    measured: Path = Field(description="directory with one folder a model")
    prompts: Path
    level: float
    out: Path = Field(description="directory for the tables")


def collected(folder: Path, listed: Collected) -> dict[str, pd.DataFrame]:
    """The models, and the tables of all of them one below the other."""
    rows, parts = [], {"gains": [], "norms": []}
    for model in listed.models:
        facts = read(folder / model.name / "model.json", "missing")
        if facts["missing"] is None:
            facts = read(folder / model.name / "model.json", *FACTS)
        rows.append(
            {"model": model.name, "family": model.family, "tuned": model.tuned, "base": model.base}
            | facts
        )
        for name, tables in parts.items():
            table = read_table(folder / model.name / f"{name}.csv")
            table.insert(0, "model", model.name)
            tables.append(table)
    models = pd.DataFrame(rows, columns=["model", "family", "tuned", "base", *FACTS])
    found = {"models": models.astype(dict.fromkeys(COUNTS, "Int64"))}
    for name, columns in (("gains", GAIN_COLUMNS), ("norms", NORM_COLUMNS)):
        there = [table for table in parts[name] if len(table)]
        found[name] = pd.concat(there) if there else pd.DataFrame(columns=["model", *columns])
    return found


def with_prompts(gains: pd.DataFrame, prompts: list[Prompt]) -> pd.DataFrame:
    """The gains with what is known of their prompts."""
    known = pd.DataFrame(
        [
            {"prompt": p.name, "set": p.set, "category": p.category, "text": p.text}
            | {"words": p.words, "complexity": p.complexity}
            for p in prompts
        ]
    )
    return gains.merge(known, on="prompt", how="left", validate="many_to_one")


def main() -> None:
    flags = CliApp.run(Flags)
    listed, prompts = Collected.model_validate_json(flags.models), read_prompts(flags.prompts)
    tables = collected(flags.measured, listed)
    models = tables["models"]
    tables["gains"] = with_prompts(tables["gains"], prompts)
    tables["sensitivity"] = sensitivity(tables["gains"], models, flags.level, listed.resamples)
    names = [p.name for p in prompts if p.set == SET]
    if not names:
        raise PromptsError(f"{flags.prompts} has no set {SET}: statistics over prompts are of it")
    tables["layers"] = by_layer(tables["norms"], models, names, flags.level)
    for name, table in tables.items():
        write_csv(flags.out / f"{name}.csv", table)


if __name__ == "__main__":
    report(main)
