"""Figure losses: validation loss of the models in which more is measured."""

from normscope.studies.main.figures.loss import draw

__all__ = ["draw"]
