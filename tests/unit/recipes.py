"""A small corpus, a short training, changed configurations, and examples of properties."""

import json
import os
import random
from typing import Any

from hypothesis import HealthCheck, settings

from normscope.io import dataset
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model, Placement
from normscope.train.recipe import Stack, Training


def text(n: int) -> str:
    return "".join(random.Random(0).choices("abcdef", weights=[8, 4, 2, 1, 1, 1], k=n))


DATA = dataset.encode(text(400))


def recipe(arm: str = "layernorm", placement: Placement = "pre", **changes) -> Stack:
    """Models of 11 steps: one, of ``seed``, or those of ``seeds``.

    Other changes go to model and training by their keys.
    """
    model = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 8}
    training = {
        "steps": 11,
        "batch_size": 3,
        "learning_rate": 0.01,
        "min_lr": 0.001,
        "warmup_steps": 2,
        "weight_decay": 0.1,
        "eval_every": 5,
        "log_every": 3,
        "loss_bound": 20.0,
        "precision": "fp32",
    }
    one = [changes.pop("seed", 1337)]
    seeds = changes.pop("seeds", one)
    for key, value in changes.items():
        (model if key in Model.model_fields else training)[key] = value
    return Stack(
        norm=ARMS[arm].norm,
        placement=placement,
        seeds=seeds,
        model=Model.model_validate(model),
        training=Training.model_validate(training),
    )


def with_changes(grid: dict[str, Any], separator: str, changes: dict[str, Any]) -> dict[str, Any]:
    """A raw configuration with values set at keys whose parts are joined by a separator."""
    raw = json.loads(json.dumps(grid))  # parts that it has twice become two
    for key, value in changes.items():
        *path, last = (int(part) if part.isdigit() else part for part in key.split(separator))
        node: Any = raw
        for part in path:
            node = node[part]
        node[last] = value
    return raw


FACTOR = int(os.environ.get("NORMSCOPE_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings for ``count`` examples, and ``NORMSCOPE_EXAMPLES`` times that on demand.

    An ordinary run repeats the same examples, so that it fails for everybody or for nobody.
    """
    return settings(
        max_examples=count * FACTOR,
        derandomize=FACTOR == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
