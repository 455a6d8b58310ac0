"""Figure optimizer: what post-norm costs over pre-norm, by optimizer."""

from normscope.studies.main.figures import draw_compared as draw

__all__ = ["draw"]
