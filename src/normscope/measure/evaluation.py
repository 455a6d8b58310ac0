"""Windows of validation text: the same for every model that is taken apart."""

import numpy as np
import torch
from torch import Tensor

from normscope.measure.windows import as_tensor, spread


def validation_windows(val: np.ndarray, T: int, windows: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets, each (windows, T), of windows spread evenly over the validation tokens.

    Raises:
        DatasetError: not one window with its targets fits.
    """
    at = spread(len(val) - 1, T, windows)
    window = as_tensor(val)[at[:, None] + torch.arange(T + 1)]
    return window[:, :-1], window[:, 1:]
