"""A trained Transformer from its files."""

from pathlib import Path

from pydantic import ValidationError

from normscope.io.stored import damaged, read
from normscope.nn.model import Transformer
from normscope.schema import PositiveInt
from normscope.train.recipe import Run
from normscope.train.weights import fill


class _Trained(Run):
    vocab_size: PositiveInt


def transformer(weights: Path) -> tuple[Run, Transformer]:
    """A trained Transformer in evaluation mode, and what it was trained by.

    Raises:
        Damaged: see ``normscope.io.stored``.
    """
    path = weights.with_name("config.json")
    try:
        config = _Trained(**read(path, *_Trained.model_fields))
    except ValidationError as e:
        raise damaged(path, str(e)) from e
    run = Run(**{name: getattr(config, name) for name in Run.model_fields})
    model = Transformer(run.model, run.norm, run.placement, config.vocab_size)
    fill(model, weights)
    return run, model
