"""Signals by depth and the tutorial in words and tables, made from the workflow's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.nn.arms import ARMS
from normscope.paper.words import (
    Section,
    interval,
    number,
    records,
    significant,
    significant_or_tiny,
)
from normscope.statistics.estimate import ALPHA, seeds_needed
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.tables import SHAPE

RATES = {  # of by_shape.csv, as readers call them
    "gradient_rate": "gradient per block",
    "gradient_kept": "gradient, second to last",
    "stream_rate": "stream per block",
    "stream_growth": "stream, last to first",
    "smallest": "least singular value",
    "largest": "largest",
}


def _network(row) -> dict[str, str]:
    """The columns that say which network a row is of."""
    return {
        "norm": ARMS[row.arm].label,
        "placement": row.placement,
        "residual": "yes" if row.residual else "no",
        "start": row.init,
        "blocks": str(row.depth),
    }


def rate_table(by_shape: pd.DataFrame) -> pd.DataFrame:
    """A row per network and state: what one block does, and what all of them do."""
    shown = by_shape[by_shape["measure"].isin(list(RATES))]
    lines = []
    for _, group in shown.groupby([*SHAPE, "state"], sort=False):
        rows = records(group)
        counts = sorted({r.n for r in rows})
        n = "–".join(dict.fromkeys([f"{counts[0]}", f"{counts[-1]}"]))
        line = (
            _network(rows[0])
            | {"state": rows[0].state, "n": n}
            | dict.fromkeys(RATES.values(), "–")
        )
        for r in rows:
            low, mean, high = (significant_or_tiny(v) for v in (r.low, r.mean, r.high))
            line[RATES[r.measure]] = mean if r.n < 2 else f"{mean} [{low}, {high}]"
        lines.append(line)
    columns = ["norm", "placement", "residual", "start", "blocks", "state", "n", *RATES.values()]
    return pd.DataFrame(lines, columns=columns)


def training_table(trainability: pd.DataFrame) -> pd.DataFrame:
    """A row per network and schedule: validation loss, beside that of character frequencies."""
    rows = [
        _network(r)
        | {
            "learning rate": f"{r.learning_rate:g}",
            "warm-up": str(r.warmup_steps),
            "n": f"{r.n}, {r.diverged} diverged" if r.diverged else str(r.n),
            "loss": number(r.mean),
            "interval": interval(r.low, r.high),
            "below frequencies": number(r.unigram - r.mean, sign=True),
        }
        for r in records(trainability)
    ]
    return pd.DataFrame(rows)


def scratch_table(scratch: pd.DataFrame) -> pd.DataFrame:
    """A row per width: the tutorial's class beside torch's layer_norm."""
    rows = [
        {
            "d": str(r.d),
            "output, ratio": number(r.ratio, 4),
            "sqrt((d - 1)/d)": number(r.theory, 4),
            "error": significant(r.error_forward),
            "error of the gradient": significant(r.error_backward),
            "error of this project's": significant(r.error_ours),
            "finite": "yes" if r.finite else "no",
        }
        for r in records(scratch)
    ]
    return pd.DataFrame(rows)


def section(
    grid: Depth, depth: Mapping[str, pd.DataFrame], textbook: Mapping[str, pd.DataFrame]
) -> Section:
    """What the template of the summary says of depth, by the template's names.

    Args:
        grid: the configuration.
        depth: rates, by_shape, losses and trainability of results/depth.
        textbook: the tables of results/textbook.
    """
    t, s = grid.training, grid.sizes
    texts = {
        "depth_sizes": f"{s.n_head} heads, width {s.n_embd}, context {s.block_size}",
        "depth_training": f"{t.steps} steps of {t.batch_size} windows, {t.precision}",
        "depth_tokens": f"{t.eval_tokens:,}" if t.eval_tokens else "all",
        "depth_kept": f"learning rate {grid.kept.learning_rate:g}, {grid.kept.warmup_steps} steps "
        "of warm-up",
        "depth_windows": grid.windows,
        "depth_seeds": seeds_needed(ALPHA),
    }
    shown = {
        "depth": rate_table(depth["by_shape"]),
        "trainability": training_table(depth["trainability"]),
        "scratch": scratch_table(textbook["scratch"]),
    }
    return Section(texts, shown)
