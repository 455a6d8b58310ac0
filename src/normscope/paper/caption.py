"""Words of captions: how many trained models stand behind a figure, and which diverged."""

from collections.abc import Sequence

import pandas as pd

from normscope.nn.arms import ARMS

NAMES = 12  # that a caption spells out


def _words(key: tuple) -> str:
    """A model's arm, as legends call it, and what else tells it apart, each word once."""
    words = (f"{part:g}" if isinstance(part, float) else str(part) for part in key)
    return " ".join(dict.fromkeys(ARMS[word].label if word in ARMS else word for word in words))


def count(table: pd.DataFrame, by: Sequence[str] = ("arm", "placement"), many: str = "arms") -> str:
    """How many trained models stand behind each arm, as words; many names become a number."""
    seeds = table.groupby(list(by), sort=False)["seed"].nunique()
    parts = []
    for n, group in seeds.groupby(seeds, sort=False):
        names = [_words(key) for key in group.index]
        each = " each" if len(names) > 1 else ""
        whom = ", ".join(names) if len(names) <= NAMES else f"{len(names)} {many}"
        parts.append(f"{n} trained model{'s' if n != 1 else ''}{each} of {whom}")
    return "; ".join(parts)


def divergences(
    runs: pd.DataFrame, by: Sequence[str] = ("arm", "placement"), how: str = "and in no mean"
) -> str:
    """Which runs diverged, and at which step; ``how`` says what they count as."""
    lost = runs[runs["diverged_at"].notna()]
    if lost.empty:
        return "No run diverged."
    names = [
        f"{_words(tuple(r[k] for k in by))} seed {r['seed']} at step {r['diverged_at']:.0f}"
        for r in lost.to_dict("records")
    ]
    return f"Diverged, {how}: {', '.join(names)}."
