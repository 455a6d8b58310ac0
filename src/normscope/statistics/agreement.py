"""Whether a model that is trained again ends where it ended before, perhaps on another chip."""

import math

import pandas as pd

TOLERANCE = 0.02  # nats: what sums in another order come to
MIXED = 0.05  # nats: seeds of a cell that spread by more end on plateaus of their own
SPREADS = 3.0  # of a cell's seeds: what is further off is another result


def agreement(was: float, now: float, spread: float) -> str:
    """``agrees``, ``within its seeds`` or ``differs``.

    Where seeds of one cell end on plateaus, so may one seed on two chips: there a loss counts as
    another result only where it is beyond what the seeds spread.

    Args:
        was, now: validation losses in nats; NaN of a model that diverged.
        spread: standard deviation of the losses of its cell's seeds; NaN of a single one.
    """
    if math.isnan(was) or math.isnan(now):
        return "agrees" if math.isnan(was) and math.isnan(now) else "differs"
    if abs(was - now) <= TOLERANCE:
        return "agrees"
    is_mixed = spread > MIXED
    return "within its seeds" if is_mixed and abs(was - now) <= SPREADS * spread else "differs"


def agreements(was: pd.DataFrame, now: pd.DataFrame) -> dict[int, str]:
    """A verdict of every seed of a job; ``missing`` where one of the two has no such model.

    Args:
        was, now: seed, val_loss; a row a model.
    """
    spread = float(was["val_loss"].std())
    before, after = (table.set_index("seed")["val_loss"] for table in (was, now))
    return {
        int(seed): agreement(before[seed], after[seed], spread)
        if seed in before.index and seed in after.index
        else "missing"
        for seed in before.index.union(after.index)
    }
