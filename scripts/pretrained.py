"""Rule pretrained: tables of residual gain, published and measured, from one table a model."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.files import write_json
from normscope.pretrained import h25
from normscope.pretrained.grid import Pretrained
from normscope.pretrained.measures import GAIN_COLUMNS, NORM_COLUMNS
from normscope.pretrained.prompts import Prompt, read_prompts
from normscope.pretrained.results import document
from normscope.pretrained.studies import FIRST_STUDIES, VALIDATION
from normscope.pretrained.tables import (
    SET,
    as_published,
    by_category,
    by_layer,
    by_model,
    by_norm,
    measured_observations,
    published_observations,
    read_table,
    sensitivity,
    twins,
)
from normscope.recipe import Strict
from normscope.stored import read
from normscope.tables import write_csv

FACTS = (
    "class norm n_layers n_embd n_heads n_kv_heads grouped_queries head_dim rho rho_as_published "
    "parameters stored computed streamed device threads source commit tokenizer_adds_bos missing"
).split()


class Flags(Strict):
    """Make the tables of residual gain."""

    grid: str = Field(description="models and resamples of the configuration, as JSON")
    measured: Path = Field(description="directory with one folder a model")
    prompts: Path
    references: Path
    reference_prompts: Path
    level: float
    out: Path


def collected(folder: Path, grid: Pretrained) -> dict[str, pd.DataFrame]:
    """The models, and the tables of all of them one below the other."""
    rows, parts = [], {"gains": [], "norms": []}
    for model in grid.models:
        facts = read(folder / model.name / "model.json", "missing")
        if facts["missing"] is None:
            facts = read(folder / model.name / "model.json", *FACTS)
        rows.append({"model": model.name, "family": model.family, "base": model.base} | facts)
        for name, tables in parts.items():
            table = read_table(folder / model.name / f"{name}.csv")
            tables.append(table.assign(model=model.name))
    found = {"models": pd.DataFrame(rows, columns=["model", "family", "base", *FACTS])}
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
    grid = Pretrained.model_validate_json(flags.grid)
    prompts = read_prompts(flags.prompts)
    references, level, resamples = pd.read_csv(flags.references), flags.level, grid.resamples
    tables = collected(flags.measured, grid)
    models = tables["models"]
    tables["gains"] = with_prompts(tables["gains"], prompts)
    published = published_observations(pd.read_csv(flags.reference_prompts), references)
    measured = measured_observations(tables["gains"], models)
    observations = pd.concat([published, measured]) if len(measured) else published
    tables["observations"] = observations
    tables["by_model"] = by_model(observations, level, resamples)
    tables["by_category"] = by_category(observations)
    studies = tables["by_model"]
    first = studies[studies["experiment"].isin(FIRST_STUDIES)]
    here = studies[studies["experiment"] == "measured"]
    both = pd.concat([here, first[~first["model"].isin(here["model"])]])
    comparisons = {
        "published, its seven models": first[first["model"].isin(VALIDATION)],
        "published, all eight": first,
        "measured": here,
        "measured, else published": both,
    }
    tables["by_norm"] = by_norm(observations, comparisons.items(), level, resamples)
    tuned = references.dropna(subset="base")
    pairs = list(tuned[["experiment", "base", "model"]].itertuples(index=False, name=None))
    pairs += [("measured", m.base, m.name) for m in grid.models if m.base is not None]
    tables["twins"] = twins(observations, pairs, level, resamples)
    of_published = h25.published_models(references, level)
    of_measured = h25.measured_models(as_published(tables["gains"], models), level, resamples)
    tables["h25_models"] = pd.concat([of_published, of_measured]) if len(here) else of_published
    tables["h25"] = h25.accuracy(tables["h25_models"], level)
    tables["sensitivity"] = sensitivity(tables["gains"], models, level, resamples)
    names = [p.name for p in prompts if p.set == SET]
    tables["layers"] = by_layer(tables["norms"], models, names, level)
    for name, table in tables.items():
        write_csv(flags.out / f"{name}.csv", table)
    write_json(flags.out / "results.json", document(tables, references, prompts))


if __name__ == "__main__":
    report(main)
