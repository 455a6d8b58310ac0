"""Figure pointwise: what DyT and Derf cost over RMSNorm, by optimizer."""

from normscope.studies.main.figures import draw_compared as draw

__all__ = ["draw"]
