"""What a benchmark says of its machine: how much the host took away."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MOST_STEAL = 0.03  # of a round; with more it is repeated
TRIES = 3


def _ticks() -> tuple[int, int]:
    """Of all cores since the start: stolen by the host, and all."""
    # user nice system idle iowait irq softirq steal, in proc_stat(5)
    counts = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return counts[7], sum(counts)


def with_steal(measure: Callable[[], T]) -> tuple[T, float, float]:
    """What was measured, its seconds, and the share of the cores' time that the host took away."""
    (stolen, total), began = _ticks(), time.monotonic()
    result = measure()
    seconds, (stolen_now, total_now) = time.monotonic() - began, _ticks()
    return result, seconds, (stolen_now - stolen) / max(1, total_now - total)


def quiet(measure: Callable[[], T]) -> T:
    """What a round measures; it says its steal, and repeats the round where that is too much."""
    left = TRIES
    while True:
        result, seconds, steal = with_steal(measure)
        left -= 1
        is_quiet = steal <= MOST_STEAL
        verdict = "" if is_quiet else ", too much: again" if left else ", too much, and taken"
        print(f"  steal {steal:.1%} of {seconds:.0f} s{verdict}", flush=True)
        if is_quiet or not left:
            return result
