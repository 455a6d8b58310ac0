"""Tables of residual gain in pretrained models: measured ones, published ones, and statistics."""

import pandas as pd

from normscope.hub.prompts import SET, PromptsError, read_prompts
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.collect import facts, measurements, with_prompts
from normscope.studies.pretrained.grid import PretrainedTables
from normscope.studies.pretrained.statistics import (
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
from normscope.studies.stage import TableInputs


def tabulate(recipe: PretrainedTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name.

    ``files`` has prompts.yaml, reference_gains.csv (published gains) and reference_prompts.csv
    (published gains prompt by prompt).
    """
    references = pd.read_csv(inputs.files["reference_gains.csv"])
    measured = collected(recipe, inputs)
    of_prompts = pd.read_csv(inputs.files["reference_prompts.csv"])
    published = published_observations(of_prompts, references)
    statistics = compared(recipe, measured["gains"], measured["models"], published, references)
    return {**measured, **statistics, "references": references}


def collected(recipe: PretrainedTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """What was measured: models, gains, norms, sensitivity, layers."""
    prompts = read_prompts(inputs.files["prompts.yaml"])
    names = [prompt.name for prompt in prompts if prompt.set == SET]
    if not names:
        path = inputs.files["prompts.yaml"]
        raise PromptsError(f"{path} has no set {SET}: statistics over prompts are of it")
    models = facts(inputs.probes, recipe.models)
    gains = with_prompts(measurements(inputs.probes, recipe.models, "gains"), prompts)
    norms = measurements(inputs.probes, recipe.models, "norms")
    return {
        "models": models,
        "gains": gains,
        "norms": norms,
        "sensitivity": sensitivity(gains, models, recipe.level, recipe.resamples),
        "layers": by_layer(norms, models, names, recipe.level),
    }


def compared(
    recipe: PretrainedTables,
    gains: pd.DataFrame,
    models: pd.DataFrame,
    published: pd.DataFrame,
    references: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """Statistics of published and measured models alike.

    Args:
        gains, models: of ``collected``.
        published: observations of ``published_observations``.
        references: reference_gains.csv.
    """
    level, resamples = recipe.level, recipe.resamples
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
