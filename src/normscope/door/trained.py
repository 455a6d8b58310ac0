"""List and load the trained models of a run; nothing is unpickled."""

import hashlib
import json
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError
from torch import nn

from normscope.door.arguments import expect, folder_of
from normscope.errors import Explained, suggest
from normscope.io import stored
from normscope.io.files import SUMS
from normscope.io.store import read_sums
from normscope.io.stored import Damaged, damaged, read
from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import RecallStack
from normscope.train import weights
from normscope.train.trained import transformers

WEIGHTS, CONFIG, METRICS = FILES = ("models.safetensors", "config.json", "metrics.csv")
COLUMNS = ["name", "seed", "arm", "placement", "val_loss", "diverged_at", "parameters"]


def models(results: str | Path = "results") -> pd.DataFrame:
    """List the trained models of a run, one row per model.

    Columns: name (``study.job``), seed, arm (missing if no arm of the registry has the norm),
    placement (missing if the study has only one), val_loss (nats per token), diverged_at (a step;
    missing if the model did not diverge), parameters (their number).

    Args:
        results: folder of the run.

    Raises:
        Explained: the folder does not exist or has no trained models, or (``Damaged``) a job's
            config.json or metrics.csv was changed.
    """
    parts = []
    for name, folder in _jobs(folder_of(results)).items():
        _check(folder, CONFIG, METRICS)
        read(folder / CONFIG, "norm")
        config = json.loads((folder / CONFIG).read_text())
        part = _metrics(folder).reset_index()
        parts.append(
            part.assign(name=name, arm=_arm(config["norm"]), placement=config.get("placement"))
        )
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def load(name: str, seed: int | None = None, results: str | Path = "results") -> nn.Module:
    """Load a trained model in evaluation mode on the CPU.

    Args:
        name: ``study.job``, as ``models`` lists them.
        seed: seed of the model; a job trains several models, and its name ends with the seed of
            the first, which is the default.
        results: folder of the run.

    Raises:
        Explained: the model does not exist or diverged, or (``Damaged``) a file was changed.
    """
    jobs = _jobs(folder_of(results))
    if expect("name", name, str, "a name that normscope.models() lists") not in jobs:
        raise Explained(f"{results} has no trained model {name!r}; {suggest(name, jobs)}")
    folder = jobs[name]
    _check(folder, *FILES)
    steps = _metrics(folder)["diverged_at"]
    seed = steps.index[0] if seed is None else seed
    seed = int(expect("seed", seed, Integral, "an int, such as 1337"))
    if seed not in steps.index:
        raise Explained(f"{name} has no seed {seed}; {suggest(seed, steps.index)}")
    if pd.notna(steps[seed]):
        others = [str(other) for other, step in steps.items() if pd.isna(step)]
        raise Explained(
            f"{name}: the model of seed {seed} diverged at step {steps[seed]}, so that there is "
            f"nothing to load; seeds that did not: {', '.join(others) or 'none'}"
        )
    models = _recall(folder) if name.startswith("recall.") else transformers(folder)[1]
    if seed not in models:
        raise damaged(folder / WEIGHTS, f"seed {seed} of {METRICS} is not in it")
    return models[seed]


def _metrics(folder: Path) -> pd.DataFrame:
    """The metrics of a job's models, by seed.

    Raises:
        Damaged: the file does not have one row per model.
    """
    table = stored.metrics(folder)
    if "parameters" not in table or table.empty or table.index.has_duplicates:
        raise damaged(folder / METRICS, "it does not have one row per seed and a column parameters")
    return table


def _recall(folder: Path) -> Mapping[int, nn.Module]:
    """The recall models of a job, which are not Transformers, by seed.

    Raises:
        Damaged: config.json or the weights do not describe such models.
    """
    path = folder / CONFIG
    try:
        stack = RecallStack(**read(path, *RecallStack.model_fields))
    except ValidationError as e:
        raise damaged(path, str(e)) from e
    return weights.load(folder / WEIGHTS, lambda: RecallModel(stack.task, stack.norm))


def _jobs(folder: Path) -> dict[str, Path]:
    """Folders of the jobs of a run that have trained models, by ``study.job``.

    Raises:
        Explained: no job has any.
    """
    jobs = [
        job
        for job in sorted(folder.glob("*/models/*"))
        if all((job / name).is_file() for name in FILES)
    ]
    if not jobs:
        raise Explained(
            f"{folder} has no trained models: name the folder of a run that trained some"
        )
    return {f"{job.parent.parent.name}.{job.name}": job for job in jobs}


def _check(folder: Path, *names: str) -> None:
    """Check that files of a job are unchanged, by their SHA-256.

    Raises:
        Damaged: one was changed; the message names the first.
    """
    if not (folder / SUMS).exists():
        raise Damaged(
            f"{folder / SUMS} is missing, so that the files next to it cannot be checked: run the "
            "workflow again to restore it"
        )
    try:
        sums = read_sums(folder / SUMS)
        for name in names:
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums.get(name):
                raise damaged(folder / name, f"its SHA-256 differs from the one in {SUMS}")
    except OSError as e:
        raise damaged(folder / SUMS, str(e)) from e


def _arm(norm: Any) -> str | None:
    """The name of the arm with this norm, or None."""
    return next((name for name, arm in ARMS.items() if arm.norm.model_dump() == norm), None)
