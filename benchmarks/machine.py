"""CPU steal during a benchmark: the time that the host took from this machine."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MOST_STEAL = 0.03  # largest share that a round may lose before it is repeated
TRIES = 3


def _ticks() -> tuple[int, int]:
    """Ticks of all cores since boot: stolen by the host, and in total."""
    # user nice system idle iowait irq softirq steal, in proc_stat(5)
    counts = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return counts[7], sum(counts)


def with_steal(measure: Callable[[], T]) -> tuple[T, float, float]:
    """Result and wall seconds of a measurement, and the share of CPU time stolen meanwhile."""
    (stolen, total), began = _ticks(), time.monotonic()
    result = measure()
    seconds, (stolen_now, total_now) = time.monotonic() - began, _ticks()
    return result, seconds, (stolen_now - stolen) / max(1, total_now - total)


def quiet(measure: Callable[[], T]) -> T:
    """Result of a round, printed with its steal and repeated if there was too much."""
    left = TRIES
    while True:
        result, seconds, steal = with_steal(measure)
        left -= 1
        is_quiet = steal <= MOST_STEAL
        verdict = "" if is_quiet else ", too much: again" if left else ", too much, and taken"
        print(f"  steal {steal:.1%} of {seconds:.0f} s{verdict}", flush=True)
        if is_quiet or not left:
            return result
