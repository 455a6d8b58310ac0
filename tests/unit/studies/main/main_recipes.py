"""A small main grid: two seeds of a job, three protocols, untrained networks of two depths."""

from typing import Any

import yaml
from recipes import recipe, with_changes

from normscope.studies.main.grid import Main

SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 8}
TRAINING = recipe(steps=4, warmup_steps=1, eval_every=4).training.model_dump()


def protocol(*, training: dict[str, Any] | None = None, **model: Any) -> dict[str, Any]:
    return {"model": SIZES | model, "training": TRAINING | (training or {})}


GRID: dict[str, Any] = yaml.safe_load("""
baseline: {arm: layernorm, placement: pre}
differences: {arm: rmsnorm, placement: pre}
runs:
- {protocol: nanogpt, arms: [layernorm], placements: [pre], learning_rates: [0.01], seeds: [1]}
- protocol: brief
  arms: [layernorm, rmsnorm]
  placements: [pre, post]
  learning_rates: [0.01]
  seeds: [9, 10, 11]
- {protocol: qk, arms: [layernorm], placements: [pre], learning_rates: [0.01, 0.1], seeds: [2]}
stack: 2
gain: {windows: 2, protocols: [nanogpt]}
measures: {windows: 2, protocols: [brief, qk]}
refined: {protocols: [brief], steps: 3}
untrained:
  arms: [layernorm]
  placements: [pre, post]
  depths: [2, 4]
  init: xavier
  towers: [none, rmsnorm]
  tower: 3
  n_head: 2
  n_embd: 8
  block_size: 8
  windows: 1
  seeds: [1, 2]
""") | {
    "protocols": {
        "nanogpt": protocol(),
        "brief": protocol(training={"eval_every": 2}),
        "qk": protocol(qk_norm="head", n_embd=4),
    }
}


def raw_grid(**changes: Any) -> dict[str, Any]:
    """The small grid with values set at dotted keys (``__`` is a dot)."""
    return with_changes(GRID, "__", changes)


def main_grid(**changes: Any) -> Main:
    return Main.model_validate(raw_grid(**changes))
