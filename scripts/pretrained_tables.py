"""Tables of residual gain in pretrained models: measured ones, published ones, and statistics."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.hub.prompts import SET, PromptsError, read_prompts
from normscope.io.files import write_json
from normscope.io.tables import write_tables
from normscope.schema import Strict
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.collect import facts, measurements, with_prompts
from normscope.studies.pretrained.grid import PretrainedTables
from normscope.studies.pretrained.results import document
from normscope.studies.pretrained.tables import (
    as_published,
    by_category,
    by_layer,
    by_model,
    by_norm,
    comparisons,
    measured_observations,
    published_observations,
    sensitivity,
    tuned_pairs,
    twins,
    with_base,
)


class Flags(Strict):
    """Make the tables of residual gain."""

    recipe: PretrainedTables
    probes: Path = Field(description="directory with a folder a measured model")
    prompts: Path
    references: Path = Field(description="published gains")
    reference_prompts: Path = Field(description="published gains prompt by prompt")
    out: Path = Field(description="directory for the tables")
    document: Path = Field(description="JSON of all of it")


def collected(flags: Flags) -> dict[str, pd.DataFrame]:
    """What was measured: models, gains, norms, sensitivity, layers."""
    recipe, prompts = flags.recipe, read_prompts(flags.prompts)
    names = [prompt.name for prompt in prompts if prompt.set == SET]
    if not names:
        raise PromptsError(f"{flags.prompts} has no set {SET}: statistics over prompts are of it")
    models = facts(flags.probes, recipe.models)
    gains = with_prompts(measurements(flags.probes, recipe.models, "gains"), prompts)
    norms = measurements(flags.probes, recipe.models, "norms")
    return {
        "models": models,
        "gains": gains,
        "norms": norms,
        "sensitivity": sensitivity(gains, models, recipe.level, recipe.resamples),
        "layers": by_layer(norms, models, names, recipe.level),
    }


def statistics(
    gains: pd.DataFrame, models: pd.DataFrame, references: pd.DataFrame, flags: Flags
) -> dict[str, pd.DataFrame]:
    """Of published and measured models alike."""
    level, resamples = flags.recipe.level, flags.recipe.resamples
    published = published_observations(pd.read_csv(flags.reference_prompts), references)
    measured = measured_observations(gains, models)
    observations = pd.concat([published, measured]) if len(measured) else published
    pairs = tuned_pairs(references, models)
    of_models = with_base(by_model(observations, level, resamples), pairs, models)
    rho = [h25.published_models(references, level)]
    if len(measured):
        untuned = as_published(gains, models[~models["tuned"].eq(True)])
        rho.append(h25.measured_models(untuned, level, resamples))
    h25_models = pd.concat(rho)
    return {
        "observations": observations,
        "by_model": of_models,
        "by_category": by_category(observations),
        "by_norm": by_norm(observations, comparisons(of_models).items(), level, resamples),
        "twins": twins(observations, list(pairs.itertuples(index=False)), level, resamples),
        "h25_models": h25_models,
        "h25": h25.accuracy(h25_models, level),
    }


def main() -> None:
    flags = parse(Flags)
    references = pd.read_csv(flags.references)
    tables = collected(flags)
    tables |= statistics(tables["gains"], tables["models"], references, flags)
    tables["references"] = references
    write_tables(flags.out, tables)
    write_json(flags.document, document(tables, references, read_prompts(flags.prompts)))


if __name__ == "__main__":
    report(main)
