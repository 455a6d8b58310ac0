"""What a study hands to the training script."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from normscope.io import dataset
from normscope.train.problem import NextCharacter, Problem
from normscope.train.recipe import Stack


class Plan(NamedTuple):
    """How the models of a job are trained.

    Args:
        problem: what they learn.
        tokens, width: tokens in a batch and width of the model, which decide how many models are
            trained together.
        config: what config.json records in addition to the arithmetic.
        data: files that are trained on.
        keeps_moments: whether Adam's second moments are stored too.
        stacks: whether several models can be trained together.
    """

    problem: Problem
    tokens: int
    width: int
    config: Mapping[str, Any]
    data: Sequence[Path] = ()
    keeps_moments: bool = False
    stacks: bool = True


def next_character(recipe: Stack, data: Path) -> Plan:
    """Transformers that learn the next character of a corpus.

    Args:
        recipe: everything except the corpus that determines the weights.
        data: directory of the dataset.
    """
    corpus = dataset.read(data)
    return Plan(
        NextCharacter(recipe, corpus),
        tokens=recipe.training.batch_size * recipe.model.block_size,
        width=recipe.model.n_embd,
        config=recipe.model_dump(),
        data=[data / name for name in dataset.FILES],
        stacks=recipe.norm.stacks,
    )
