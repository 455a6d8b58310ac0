"""Figure placement: what each placement costs over pre-norm."""

from normscope.studies.main.figures import draw_compared as draw

__all__ = ["draw"]
