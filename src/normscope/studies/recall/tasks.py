"""Batches of the two tasks, drawn from a seeded generator.

Shapes: B sequences of T tokens; the query is the last token.
"""

import torch
from torch import Generator, Tensor

from normscope.studies.recall.recipe import Task


def draw(task: Task, n: int, g: Generator) -> tuple[Tensor, Tensor]:
    """``n`` sequences (n, T) and their answers (n,), both int64."""
    return (_copy if task.kind == "copy" else _recall)(task, n, g)


def _copy(task: Task, n: int, g: Generator) -> tuple[Tensor, Tensor]:
    """The notebook's draw: distinct keys, token 0 before the query, the query as the answer."""
    shown = task.entities + task.attributes
    # the largest of independent uniforms, in their order, are a uniform draw without replacement
    keys = torch.rand(n, task.entities * task.attributes, generator=g).topk(shown).indices
    query, context = keys[:, :1], keys[:, 1:]
    return torch.cat([context, torch.zeros_like(query), query], 1), query[:, 0].clone()


def _recall(task: Task, n: int, g: Generator) -> tuple[Tensor, Tensor]:
    """A pair for every entity, in the order of entities: the model sees a set, not an order."""
    attributes = torch.randint(task.attributes, (n, task.entities), generator=g)
    entity = torch.randint(task.entities, (n, 1), generator=g)
    pairs = torch.arange(task.entities) * task.attributes + attributes
    query = task.entities * task.attributes + entity
    return torch.cat([pairs, query], 1), attributes.gather(1, entity)[:, 0]
