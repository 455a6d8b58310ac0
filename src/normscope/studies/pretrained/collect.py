"""The measurements of all pretrained models, one below the other. No torch."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from normscope.hub.prompts import Prompt
from normscope.io.stored import read
from normscope.io.tables import collect
from normscope.studies.pretrained.grid import Listed
from normscope.studies.pretrained.measures import GAIN_COLUMNS, NORM_COLUMNS
from normscope.studies.pretrained.statistics import COUNTS, read_measurements

FACTS = (
    "class norm n_layers n_embd n_heads n_kv_heads grouped_queries head_dim rho rho_as_published "
    "parameters stored computed streamed device threads source commit tokenizer_adds_bos missing"
).split()
COLUMNS = {"gains": GAIN_COLUMNS, "norms": NORM_COLUMNS}


def facts(probes: Path, listed: Sequence[Listed]) -> pd.DataFrame:
    """A row per model: what it is, or why it could not be measured (``missing``).

    Raises:
        Damaged: see ``normscope.io.stored``.
    """
    rows = []
    for model in listed:
        path = probes / model.name / "model.json"
        known = read(path, "missing")
        if known["missing"] is None:
            known = read(path, *FACTS)
        family = {"family": model.family, "tuned": model.tuned, "base": model.base}
        rows.append({"model": model.name} | family | known)
    table = pd.DataFrame(rows, columns=["model", "family", "tuned", "base", *FACTS])
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


def measurements(probes: Path, listed: Sequence[Listed], name: str) -> pd.DataFrame:
    """``gains`` or ``norms`` of all models, with the model in front."""
    keys = {model.name: {"model": model.name} for model in listed}
    table = collect(probes, f"{name}.csv", keys, read_measurements)
    columns = ["model", *COLUMNS[name]]
    return table[columns] if len(table) else pd.DataFrame(columns=columns)


def with_prompts(gains: pd.DataFrame, prompts: Sequence[Prompt]) -> pd.DataFrame:
    """The gains with set, category, text, words and complexity of their prompts."""
    rows = [
        {"prompt": p.name, "set": p.set, "category": p.category, "text": p.text}
        | {"words": p.words, "complexity": p.complexity}
        for p in prompts
    ]
    return gains.merge(pd.DataFrame(rows), on="prompt", how="left", validate="many_to_one")
