"""Figure literature_sweep: the learning rate, with and without norms of queries and keys."""

from normscope.studies.sweeps import draw

__all__ = ["draw"]
