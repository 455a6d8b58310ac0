"""Training outcomes of models, and what the pilot models say of their learning rates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.io import dataset
from normscope.io.tables import collect
from normscope.io.texts import text_folder, text_of
from normscope.statistics.outcome import unigram_loss, with_outcome
from normscope.statistics.summary import split
from normscope.studies.cells import ModelTables
from normscope.studies.columns import PILOT
from normscope.studies.pilot import PilotChoice
from normscope.studies.stage import TableInputs


def trained_models(recipe: ModelTables, inputs: TableInputs) -> pd.DataFrame:
    """One row per model, with its outcome and what the pilot models say of its cell."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    models = collect(inputs.models, "metrics.csv", keys)
    models = models.astype({"val_loss": float, "diverged_at": "Int64"})
    models = with_outcomes(models, inputs.corpus, recipe.texts, recipe.eval_tokens)
    return with_pilot(models, recipe.jobs, recipe.pilot)


def with_outcomes(
    models: pd.DataFrame,
    corpus: Path,
    texts: Mapping[str, Sequence[str]],
    eval_tokens: Mapping[str, int | None],
    by: str = "protocol",
) -> pd.DataFrame:
    """The models with ``text``, ``capped_loss`` and ``failed``, each by the text that it learned.

    The alphabet of a text determines the loss of a uniform predictor, at which losses are capped.
    Its character frequencies determine the loss above which a model failed, which is over the same
    tokens as the losses.

    Args:
        texts: names of the texts by protocol.
        eval_tokens: of the validation split, from its start, by protocol; None is all.
        by: the column with the protocol.
    """
    parts, cells = [], zip(models[by], models["seed"], strict=True)
    models = models.assign(text=[text_of(texts[name], seed) for name, seed in cells])
    for key, group in split(models, [by, "text"]):
        data = dataset.read(text_folder(corpus, key["text"]))
        tokens = data.val[1 : eval_tokens[key[by]]]
        unigram = unigram_loss(data.train, tokens, data.vocab_size)
        parts.append(with_outcome(group, data.vocab_size, unigram))
    return pd.concat(parts).sort_index()


def with_pilot(
    models: pd.DataFrame, jobs: Mapping[str, Any], pilot: Mapping[str, PilotChoice]
) -> pd.DataFrame:
    """The models with the columns ``PILOT`` of their cells, empty without pilot models."""
    loss, edge = (column.name for column in PILOT)
    if not pilot:
        return models.assign(**{loss: float("nan"), edge: None})
    rows = [
        jobs[job]._asdict() | {loss: tuned.loss, edge: tuned.at_edge}
        for job, tuned in pilot.items()
    ]
    known = pd.DataFrame(rows).astype({loss: float, edge: object})
    keys = [column for column in known if column in models and column not in (loss, edge)]
    return models.merge(known.drop_duplicates(keys), on=keys, how="left")
