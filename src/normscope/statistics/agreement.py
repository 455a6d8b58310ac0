"""Whether a retrained model, perhaps on other hardware, reaches the same loss."""

import math

import pandas as pd

TOLERANCE = 0.02  # nats: the effect of summing in another order
MIXED = 0.05  # nats: seeds of a cell that spread by more end on different plateaus
SPREADS = 3.0  # standard deviations of the cell's seeds; beyond that the result differs


def agreement(was: float, now: float, spread: float) -> str:
    """``agrees``, ``within its seeds`` or ``differs``.

    Where the seeds of one cell end on different plateaus, so may one seed on two machines. A loss
    then differs only if it is outside the spread of the seeds.

    Args:
        was, now: validation losses in nats; NaN for a model that diverged.
        spread: standard deviation of the losses of its cell's seeds; NaN for a single seed.
    """
    if math.isnan(was) or math.isnan(now):
        return "agrees" if math.isnan(was) and math.isnan(now) else "differs"
    if abs(was - now) <= TOLERANCE:
        return "agrees"
    is_mixed = spread > MIXED
    return "within its seeds" if is_mixed and abs(was - now) <= SPREADS * spread else "differs"


def agreements(was: pd.DataFrame, now: pd.DataFrame) -> dict[int, str]:
    """The verdict for every seed of a job; ``missing`` if one of the tables lacks the model.

    Args:
        was, now: columns seed and val_loss, one row per model.
    """
    spread = float(was["val_loss"].std())
    before, after = (table.set_index("seed")["val_loss"] for table in (was, now))
    return {
        int(seed): agreement(before[seed], after[seed], spread)
        if seed in before.index and seed in after.index
        else "missing"
        for seed in before.index.union(after.index)
    }
