"""Training outcomes: divergence as the worst loss, and the loss of character frequencies."""

import math

import numpy as np
import pandas as pd

STUCK = 0.05  # nats by which a model must beat the loss of character frequencies


def unigram_loss(train: np.ndarray, targets: np.ndarray, vocab_size: int) -> float:
    """Cross-entropy in nats of targets under the frequencies of the training tokens.

    This is the best loss of a model that uses no context. A character that the training tokens lack
    counts as seen once.
    """
    seen = np.maximum(np.bincount(train, minlength=vocab_size), 1)
    return float(-np.log(seen / seen.sum())[targets].mean())


def with_outcome(table: pd.DataFrame, vocab_size: int, unigram: float) -> pd.DataFrame:
    """The models with ``capped_loss`` and ``failed``, so that a divergence counts too.

    - ``capped_loss``: the validation loss in nats, at most ``ln V``, the loss of a uniform
      predictor; ``ln V`` where the run diverged.
    - ``failed``: 1 where it is not ``STUCK`` below the loss of character frequencies, 0 elsewhere.

    Args:
        table: one row per model, with val_loss and diverged_at (a step, or NaN).
        vocab_size: V.
        unigram: loss of character frequencies, in nats.
    """
    ceiling = math.log(vocab_size)
    known = table["val_loss"].astype(float).where(table["diverged_at"].isna())
    capped = known.fillna(ceiling).clip(upper=ceiling)
    return table.assign(capped_loss=capped, failed=(capped > unigram - STUCK).astype(int))
