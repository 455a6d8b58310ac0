"""Training outcomes of models that learn different texts."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from normscope.io import dataset
from normscope.io.texts import text_folder
from normscope.statistics.outcome import unigram_loss, with_outcome


def with_outcomes(models: pd.DataFrame, corpus: Path, texts: Mapping[str, str]) -> pd.DataFrame:
    """The models with ``capped_loss`` and ``failed``, each by the text that it learned.

    The alphabet of a text determines the loss of a uniform predictor, at which losses are capped.
    Its character frequencies determine the loss above which a model failed.

    Args:
        models: one row per model, with protocol, val_loss and diverged_at.
        corpus: directory of the default text.
        texts: name of the text by protocol.
    """
    names, parts = models["protocol"].map(texts), []
    for name, of_text in models.groupby(names, sort=False):
        data = dataset.read(text_folder(corpus, str(name)))
        unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
        parts.append(with_outcome(of_text, data.vocab_size, unigram))
    return pd.concat(parts).sort_index()
