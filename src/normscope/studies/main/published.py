"""Published losses, next to those of the baseline where it was trained with the same settings."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.statistics.summary import BOUNDS, describe, select
from normscope.studies.main.recipe import MainTables
from normscope.studies.stage import TableInputs


def compare_published(
    recipe: MainTables, inputs: TableInputs, runs: pd.DataFrame, metas: Mapping[str, Any]
) -> pd.DataFrame:
    """The published losses and the baseline's, where it was trained with the same settings.

    Args:
        metas: ``meta.json`` of each text.
    """
    jobs = [name for name, cell in recipe.jobs.items() if cell == recipe.baseline]
    ours = json.loads((inputs.models / jobs[0] / "config.json").read_text())
    protocol, arm, placement, _ = recipe.baseline
    tokens = [metas[text]["sha256"]["train.bin"] for text in recipe.texts[protocol]]
    ours |= {"baseline": f"{arm}-{placement}", "train_bin_sha256": ", ".join(tokens)}
    numbers = pd.read_csv(inputs.files["published.csv"])
    settings = [json.loads(inputs.files[name].read_text()) for name in numbers["settings"]]
    covered = [is_covered(setting, ours) for setting in settings]
    return published_numbers(
        numbers, covered, select(runs, **recipe.baseline._asdict()), recipe.level
    )


def is_covered(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether ``ours`` has every setting of ``reference``, section by section."""
    return all(
        is_covered(value, ours[key]) if isinstance(value, Mapping) else ours[key] == value
        for key, value in reference.items()
    )


def published_numbers(
    table: pd.DataFrame, is_comparable: Sequence[bool], models: pd.DataFrame, level: float
) -> pd.DataFrame:
    """Published numbers, each with n, mean and interval of the baseline's models.

    Args:
        is_comparable: whether our models were trained with the same settings.
    """
    rows = [
        describe(models[measure], level) if is_same else {"n": 0}
        for measure, is_same in zip(table["measure"], is_comparable, strict=True)
    ]
    ours = pd.DataFrame(rows, columns=BOUNDS, index=table.index)
    return table.assign(comparable=list(is_comparable)).join(ours)
