"""Trained Transformers from the files of their job."""

from pathlib import Path

from pydantic import ValidationError

from normscope.io.stored import damaged, read
from normscope.nn.model import Transformer
from normscope.schema import PositiveInt
from normscope.train.recipe import Stack
from normscope.train.weights import load


class _Trained(Stack):
    vocab_size: PositiveInt


def transformers(folder: Path) -> tuple[Stack, dict[int, Transformer]]:
    """What the Transformers of a job were trained by, and they by seed, in evaluation mode.

    Raises:
        Damaged: see ``normscope.io.stored``.
    """
    path = folder / "config.json"
    try:
        config = _Trained(**read(path, *_Trained.model_fields))
    except ValidationError as e:
        raise damaged(path, str(e)) from e

    def build() -> Transformer:
        return Transformer(config.model, config.norm, config.placement, config.vocab_size)

    stack = Stack(**{name: getattr(config, name) for name in Stack.model_fields})
    weights = folder / "models.safetensors"
    models = load(weights, build)
    if list(models) != sorted(stack.seeds):
        raise damaged(weights, f"it holds seeds {[*models]}, its config.json {stack.seeds}")
    return stack, models
