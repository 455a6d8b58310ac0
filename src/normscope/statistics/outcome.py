"""What came of a training, for every model: its loss within the range that a loss can have."""

import math

import pandas as pd

STUCK = 0.05  # nats below the loss of character frequencies that a model must reach


def with_outcome(table: pd.DataFrame, vocab_size: int, unigram: float) -> pd.DataFrame:
    """The models with ``capped_loss`` and ``failed``, so that a divergence counts too.

    - ``capped_loss``: the validation loss in nats, at most ``ln V``, the loss of knowing nothing;
      ``ln V`` where the run diverged.
    - ``failed``: 1 where it is not ``STUCK`` below the loss of character frequencies, 0 elsewhere.

    Args:
        table: a row a model, with val_loss and diverged_at (a step, or NaN).
        vocab_size: V.
        unigram: loss of character frequencies, in nats.
    """
    ceiling = math.log(vocab_size)
    known = table["val_loss"].astype(float).where(table["diverged_at"].isna())
    capped = known.fillna(ceiling).clip(upper=ceiling)
    return table.assign(capped_loss=capped, failed=(capped > unigram - STUCK).astype(int))
