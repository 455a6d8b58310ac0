"""The loss of character frequencies: the best loss of a model that uses no context."""

import numpy as np


def unigram_loss(train: np.ndarray, targets: np.ndarray, vocab_size: int) -> float:
    """Cross-entropy in nats of targets under the frequencies of the training tokens.

    A character that the training tokens lack counts as seen once.
    """
    seen = np.maximum(np.bincount(train, minlength=vocab_size), 1)
    return float(-np.log(seen / seen.sum())[targets].mean())
