"""Tables of residual gain in pretrained models: measured ones, published ones, and statistics."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from normscope.hub.prompts import Prompt, read_prompts
from normscope.io.stored import read
from normscope.io.tables import collect
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.grid import ModelFacts, PretrainedTables
from normscope.studies.pretrained.measures import PROBED
from normscope.studies.pretrained.statistics import (
    add_base,
    by_block,
    by_model,
    by_norm,
    comparisons,
    measured_observations,
    published_observations,
    read_measurements,
    select_published_protocol,
    sensitivity,
)
from normscope.studies.pretrained.tables import TABLES
from normscope.studies.stage import TableInputs

LISTED = ["model", "family", "tuned", "base"]  # columns that the configuration fills
FACTS = [name for name in TABLES["models"].names if name not in LISTED]
COUNTS = [column.name for column in TABLES["models"].columns if column.role == "count"]
PROMPT = ["set", "category", "text", "words", "complexity"]


def tabulate(recipe: PretrainedTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name.

    ``files`` has prompts.yaml, reference_gains.csv (published gains) and reference_prompts.csv
    (published gains prompt by prompt).
    """
    level, resamples = recipe.level, recipe.resamples
    references = pd.read_csv(inputs.files["reference_gains.csv"])
    prompts = read_prompts(inputs.files["prompts.yaml"])
    models = facts(inputs.probes, recipe.models)
    gains = add_prompts(measurements(inputs.probes, recipe.models, "gains"), prompts)

    of_prompts = pd.read_csv(inputs.files["reference_prompts.csv"])
    observations = published_observations(of_prompts, references)
    h25_models = h25.published_models(references, level)
    if len(measured := measured_observations(gains, models)):
        observations = pd.concat([observations, measured])
        untuned = models[~models["tuned"].eq(True) & models["base"].isna()]
        judged = h25.measured_models(select_published_protocol(gains, untuned), level, resamples)
        h25_models = pd.concat([h25_models, judged])

    of_models = add_base(by_model(observations, level, resamples), references, models)
    return {
        "models": models,
        "gains": gains,
        "norms": measurements(inputs.probes, recipe.models, "norms"),
        "sensitivity": sensitivity(gains, models, level, resamples),
        "inside": by_block(measurements(inputs.probes, recipe.models, "inside"), models),
        "observations": observations,
        "by_model": of_models,
        "by_norm": by_norm(observations, comparisons(of_models), level, resamples),
        "h25_models": h25_models,
        "h25": h25.accuracy(h25_models, level),
        "references": references,
    }


def facts(probes: Path, listed: Sequence[ModelFacts]) -> pd.DataFrame:
    """One row per model: its properties, or why it could not be measured (``missing``).

    Raises:
        Damaged: a file lacks a property (see ``normscope.io.stored``).
    """
    rows = []
    for model in listed:
        path = probes / model.name / "model.json"
        known = read(path, "missing")
        if known["missing"] is None:
            known = read(path, *FACTS)
        rows.append(model.model_dump() | {"model": model.name, **known})
    table = pd.DataFrame(rows, columns=[*LISTED, *FACTS])
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


def measurements(probes: Path, listed: Sequence[ModelFacts], name: str) -> pd.DataFrame:
    """``gains``, ``norms`` or ``inside`` of all models, by prompt."""
    keys = {model.name: {"model": model.name} for model in listed}
    table = collect(probes, f"{name}.csv", keys, read_measurements)
    return table if len(table) else pd.DataFrame(columns=["model", *PROBED[name]])


def add_prompts(gains: pd.DataFrame, prompts: Sequence[Prompt]) -> pd.DataFrame:
    """The gains with set, category, text, words and complexity of their prompts."""
    rows = [{"prompt": p.name} | {name: getattr(p, name) for name in PROMPT} for p in prompts]
    return gains.merge(pd.DataFrame(rows), on="prompt", how="left", validate="many_to_one")
