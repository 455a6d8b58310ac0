"""Rule pretrained: statistics of residual gain, of published and measured models."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.hub.prompts import read_prompts
from normscope.io.csvfile import write_csv
from normscope.io.files import write_json
from normscope.schema import PositiveInt, Strict
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.results import document
from normscope.studies.pretrained.studies import FIRST_STUDIES, VALIDATION
from normscope.studies.pretrained.tables import (
    as_published,
    base_models,
    by_category,
    by_model,
    by_norm,
    measured_observations,
    published_observations,
    read_table,
    twins,
)

TABLES = "observations by_model by_category by_norm twins h25_models h25".split()


class Flags(Strict):
    """Make the statistics of residual gain."""

    measured: Path = Field(description="directory with models.csv, gains.csv, layers.csv")
    prompts: Path
    references: Path
    reference_prompts: Path
    resamples: PositiveInt
    level: float
    out: Path = Field(description="directory for the tables")
    document: Path = Field(description="JSON of all of it")


def comparisons(by_model: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Which models LayerNorm and RMSNorm are compared over; none that is fine-tuned."""
    untuned = by_model[by_model["base"].isna()]
    first = untuned[untuned["experiment"].isin(FIRST_STUDIES)]
    here = untuned[untuned["experiment"] == "measured"]
    return {
        "published, its seven models": first[first["model"].isin(VALIDATION)],
        "published, all eight": first,
        "measured": here,
        "measured, else published": base_models(by_model),
    }


def main() -> None:
    flags = CliApp.run(Flags)
    level, resamples = flags.level, flags.resamples
    references = pd.read_csv(flags.references)
    tables = {n: read_table(flags.measured / f"{n}.csv") for n in ("models", "gains", "layers")}
    models, gains = tables["models"], tables["gains"]
    published = published_observations(pd.read_csv(flags.reference_prompts), references)
    measured = measured_observations(gains, models)
    observations = pd.concat([published, measured]) if len(measured) else published
    tables["observations"] = observations
    tuned = references.dropna(subset="base")
    here = models.dropna(subset=["base", "norm"]).assign(experiment="measured")
    pairs = pd.concat([of[["experiment", "base", "model"]] for of in (tuned, here)])
    statistics = by_model(observations, level, resamples)
    statistics = statistics.merge(pairs, on=["experiment", "model"], how="left")
    tuned_here = models.loc[models["tuned"].eq(True), "model"]
    is_tuned = (statistics["experiment"] == "measured") & statistics["model"].isin(tuned_here)
    statistics["base"] = statistics["base"].mask(is_tuned & statistics["base"].isna(), "not listed")
    tables["by_model"] = statistics
    tables["by_category"] = by_category(observations)
    compared = comparisons(tables["by_model"])
    tables["by_norm"] = by_norm(observations, compared.items(), level, resamples)
    tables["twins"] = twins(observations, list(pairs.itertuples(index=False)), level, resamples)
    of_models = [h25.published_models(references, level)]
    if len(measured):
        untuned = as_published(gains, models[~models["tuned"].eq(True)])
        of_models.append(h25.measured_models(untuned, level, resamples))
    tables["h25_models"] = pd.concat(of_models)
    tables["h25"] = h25.accuracy(tables["h25_models"], level)
    for name in TABLES:
        write_csv(flags.out / f"{name}.csv", tables[name])
    write_json(flags.document, document(tables, references, read_prompts(flags.prompts)))


if __name__ == "__main__":
    report(main)
