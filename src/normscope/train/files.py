"""The files of a job's trained models."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from normscope.io.files import write_bytes, write_json, write_sums, write_text
from normscope.train.trainer import CURVE, Learner

METRICS = "seed val_loss best_val_loss val_loss_window_sd train_loss diverged_at parameters".split()


def write_models(
    out: Path,
    learners: Sequence[Learner],
    config: Mapping[str, Any],
    *,
    moments: bool = False,
    others: Mapping[str, str] | None = None,
) -> None:
    """Write the trained models of a job, and last the SHA-256 sums of their files.

    models.safetensors: each tensor as ``<seed>.<name>``. config.json. curves.csv: one row per seed
    and step, with ``CURVE`` and what the problem watches. metrics.csv: one row per seed, with
    ``METRICS``; the losses of a model that diverged are empty. With ``moments``,
    moments.safetensors: Adam's second moments, under the names of their parameters.

    Args:
        out: directory of the job.
        learners: its models, trained.
        config: everything that determined them.
        moments: whether to keep the moments, which are as large as the models.
        others: the contents of further files by name.
    """
    tensors = {"models.safetensors": [learner.model.state_dict() for learner in learners]}
    if moments:
        tensors["moments.safetensors"] = [learner.second_moments for learner in learners]
    curves = [{"seed": learner.seed, **row} for learner in learners for row in learner.curve]
    for file, of_each in tensors.items():
        named: dict[str, Tensor] = {
            f"{learner.seed}.{name}": tensor.cpu().contiguous()
            for learner, stored in zip(learners, of_each, strict=True)
            for name, tensor in stored.items()
        }
        write_bytes(out / file, safetensors.torch.save(named))
    write_json(out / "config.json", dict(config))
    columns = dict.fromkeys(["seed", *CURVE, *(column for row in curves for column in row)])
    _write_rows(out / "curves.csv", columns, curves)
    _write_rows(out / "metrics.csv", METRICS, map(_metrics, learners))
    for name, text in (others or {}).items():
        write_text(out / name, text)
    write_sums(out, [*tensors, "config.json", "curves.csv", "metrics.csv", *(others or {})])


def final_loss(learner: Learner) -> float | None:
    """The validation loss of a trained model; None if it diverged."""
    loss = learner.val_loss if learner.diverged_at is None else None
    return loss.mean if loss else None


def _write_rows(path: Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV in which cells that are missing or None are empty."""
    table = io.StringIO()
    writer = csv.DictWriter(table, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, table.getvalue().encode())


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
