"""The files of a job's trained models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from normscope.io.files import write_bytes, write_json, write_sums
from normscope.train.outputs import write_rows
from normscope.train.trainer import CURVE, Learner

METRICS = "seed val_loss best_val_loss val_loss_window_sd train_loss diverged_at parameters".split()


def write_models(
    out: Path, learners: Sequence[Learner], config: Mapping[str, Any], *, moments: bool = False
) -> None:
    """The trained models of a job, and last the SHA-256 sums of their files.

    models.safetensors: each tensor by ``<seed>.<name>``. config.json. curves.csv: one row per seed
    and step, with ``CURVE`` and what the problem watches. metrics.csv: one row per seed, with
    ``METRICS``; the losses of a model that diverged are empty. With ``moments``,
    moments.safetensors: Adam's second moments, under the names of their parameters.

    Args:
        out: directory of the job.
        learners: its models, trained.
        config: all that decided them, resolved.
        moments: whether to keep these too, as large as the models.
    """
    tensors = {"models.safetensors": [learner.model.state_dict() for learner in learners]}
    if moments:
        tensors["moments.safetensors"] = [learner.second_moments for learner in learners]
    curves = [{"seed": learner.seed, **row} for learner in learners for row in learner.curve]
    for name, of_each in tensors.items():
        write_bytes(out / name, safetensors.torch.save(_named(learners, of_each)))
    write_json(out / "config.json", dict(config))
    columns = dict.fromkeys(["seed", *CURVE, *(column for row in curves for column in row)])
    write_rows(out / "curves.csv", columns, curves)
    write_rows(out / "metrics.csv", METRICS, map(_metrics, learners))
    write_sums(out, [*tensors, "config.json", "curves.csv", "metrics.csv"])


def _named(
    learners: Sequence[Learner], of_each: Sequence[Mapping[str, Tensor]]
) -> dict[str, Tensor]:
    """The tensors of every learner, each by ``<seed>.<name>``."""
    return {
        f"{learner.seed}.{name}": tensor.cpu().contiguous()
        for learner, tensors in zip(learners, of_each, strict=True)
        for name, tensor in tensors.items()
    }


def _metrics(learner: Learner) -> dict[str, Any]:
    loss = learner.val_loss if learner.diverged_at is None else None
    evaluated = [value for row in learner.curve if (value := row.get("val_loss")) is not None]
    return {
        "seed": learner.seed,
        "val_loss": loss.mean if loss else None,
        "best_val_loss": min(evaluated) if loss else None,
        "val_loss_window_sd": loss.window_sd if loss else None,
        "train_loss": learner.curve[-1]["train_loss"] if learner.curve else None,
        "diverged_at": learner.diverged_at,
        "parameters": sum(p.numel() for p in learner.model.parameters()),
    }
