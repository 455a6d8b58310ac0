"""Figure rates: what the learning rate does to each arm's validation loss."""

from normscope.studies.sweeps import draw

__all__ = ["draw"]
