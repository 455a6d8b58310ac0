"""residual_gain.json: what the published notebook saves, under the field's names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.hub.prompts import Prompt
from normscope.studies.pretrained.measures import MODEL, VALIDATION
from normscope.studies.pretrained.published import (
    hypothesis_status,
    inversion,
    overall,
    t_of_summary,
)

STATISTICS = "n mean sd min max t p_one_sided status r_deviation p_deviation".split()
CORRECTED = "log_gain low high p_holm reads r r_low r_high r_p_holm r_given_words".split()


def _rows(table: pd.DataFrame, columns: Iterable[Any] | None = None) -> list[dict[Any, Any]]:
    """Rows as JSON stores them: None for a missing number."""
    chosen = table if columns is None else table[list(columns)]
    return chosen.astype(object).where(chosen.notna(), None).to_dict("records")


def document(tables: Mapping[str, pd.DataFrame], prompts: Sequence[Prompt]) -> dict[str, Any]:
    """The content of residual_gain.json.

    Args:
        tables: the tables of the study, by name.
        prompts: the prompts that were measured.
    """
    models, by_model, references = (tables[name] for name in ("models", "by_model", "references"))
    measured = by_model[by_model["experiment"] == "measured"]
    layernorm = measured[measured["norm"] == "LayerNorm"]
    loaded = models.dropna(subset="norm")
    texts = [
        {"set": p.set, "category": p.category, "name": p.name, "text": p.text, "words": p.words}
        | {"expected_entropy": p.expected_entropy, "complexity": p.complexity}
        for p in prompts
    ]
    last_gains = references[references["metric"] == "last_gain"]
    return {
        "prompts": texts,
        "models": _rows(loaded.drop(columns="missing")),
        "not_measured": _rows(models[models["norm"].isna()], ["model", "family", "missing"]),
        "n_models": len(loaded),
        "n_prompts": len(prompts),
        "n_measurements": len(tables["gains"]),
        "reference_models": [
            row | {"t_of_mean_sd_n": t_of_summary(row["value"], row["sd"], row["n"])}
            for row in _rows(last_gains, [*MODEL, "value", "sd", "n", "source"])
        ],
        "published_validation": list(VALIDATION),
        "statistics_as_published": _rows(by_model, [*MODEL, *STATISTICS]),
        "statistics_corrected": _rows(by_model, [*MODEL, *CORRECTED]),
        "mean_by_category": _rows(tables["by_category"]),
        "hypothesis_as_published": {  # of the measured LayerNorm models
            "layernorm_dampening": hypothesis_status(list(layernorm["status"])),
            "printed": overall(list(layernorm["status"])),
            "bentov_inversion": inversion(list(layernorm["r_deviation"].dropna())),
        },
        "norms": _rows(tables["by_norm"]),
        "h25": _rows(tables["h25"]),
        "measurements": _rows(tables["gains"]),
        "sites": {
            model: _rows(layers.drop(columns="model"))
            for model, layers in tables["layers"].groupby("model", sort=False)
        },
    }
