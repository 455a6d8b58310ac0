"""How the models of a card are trained: like those of other studies, after their pilot models."""

from pathlib import Path

from normscope.train.plan import Plan, next_character
from normscope.train.schedule import Sweep


def prepare(recipe: Sweep, data: Path) -> Plan:
    """How the models of a job are trained."""
    return next_character(recipe, data)
