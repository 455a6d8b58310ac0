"""Trained Transformers from the files of their job."""

from pathlib import Path

from normscope.io.stored import damage, metrics, read
from normscope.nn.model import Transformer
from normscope.train.recipe import Stack
from normscope.train.weights import load


def transformers(folder: Path) -> tuple[Stack, dict[int, Transformer]]:
    """Load the Transformers of a job, by seed and in evaluation mode, and their recipe.

    Raises:
        Damaged: config.json or models.safetensors does not hold what it should.
    """
    path, weights = folder / "config.json", folder / "models.safetensors"
    config = read(path, *Stack.model_fields)
    try:
        stack = Stack(**config)
    except ValueError as e:  # pydantic's ValidationError is one
        raise damage(path, str(e)) from e

    sizes = (stack.model, stack.norm, stack.placement)  # and the characters of each model's text
    models = load(weights, lambda of: Transformer(*sizes, len(of["token_embedding.weight"])))
    if list(models) != sorted(stack.seeds):
        raise damage(weights, f"it holds seeds {[*models]}, its config.json {stack.seeds}")
    return stack, models


def load_verified(folder: Path) -> tuple[Stack, dict[int, Transformer]]:
    """The same without the models that diverged, of which nothing can be measured.

    Raises:
        Damaged: As ``transformers``, or metrics.csv is not that of a job.
    """
    stack, models = transformers(folder)
    is_sound = metrics(folder)["diverged_at"].isna()
    return stack, {seed: model for seed, model in models.items() if is_sound[seed]}
