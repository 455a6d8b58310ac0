"""The study's models learn the recall task; its data are drawn, not read."""

from pathlib import Path

from normscope.studies.recall.problem import Asked
from normscope.studies.recall.recipe import RecallStack
from normscope.train.plan import Plan


def prepare(recipe: RecallStack, data: Path | None) -> Plan:
    """How the models of a job are trained; ``data`` is not used."""
    task = recipe.task
    return Plan(
        Asked(recipe), task.batch_size, task.n_embd, recipe.model_dump(), keeps_moments=True
    )
