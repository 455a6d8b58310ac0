"""Trained models of a run, by name; nothing is unpickled."""

import hashlib
import json
from collections.abc import Callable, Mapping
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
    """The trained models of a run, one row each.

    Columns: name (``study.job``), seed, arm (missing where no arm of the registry has these
    factors), placement (missing where a study has only one), val_loss in nats, diverged_at (a
    step; missing where the model did not diverge), parameters (how many).

    Args:
        results: folder of the run.

    Raises:
        Explained: there is no such folder, it has no trained models, or (``Damaged``) a job's
            config.json or metrics.csv is not what was written.
    """
    parts = []
    for name, folder in _jobs(folder_of(results)).items():
        _check(folder, CONFIG, METRICS)
        config = _config(folder)
        part = _metrics(folder).reset_index()
        parts.append(
            part.assign(name=name, arm=_arm(config["norm"]), placement=config.get("placement"))
        )
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def load(name: str, seed: int | None = None, results: str | Path = "results") -> nn.Module:
    """A trained model, in evaluation mode, on the CPU.

    Args:
        name: ``study.job``, as ``models`` lists them.
        seed: which model of the job; by default the first, whose seed the name ends with.
        results: folder of the run.

    Raises:
        Explained: there is no such model, it diverged, or (``Damaged``) a file is not what was
            written.
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
    study, _, _ = name.partition(".")
    found = READERS.get(study, _transformers)(folder)
    if seed not in found:
        raise damaged(folder / WEIGHTS, f"it holds seeds {[*found]}, its {METRICS} {seed}")
    return found[seed]


def _config(folder: Path) -> dict[str, Any]:
    """The choices of a job, with the factors of its norm.

    Raises:
        Damaged: the file is not such a mapping.
    """
    path = folder / CONFIG
    try:
        read(path, "norm")
        return json.loads(path.read_text())
    except OSError as e:
        raise damaged(path, repr(e)) from e


def _metrics(folder: Path) -> pd.DataFrame:
    """What came of the models of a job, by seed.

    Raises:
        Damaged: the file is not such a table.
    """
    path = folder / METRICS
    try:
        table = stored.metrics(folder)
    except OSError as e:
        raise damaged(path, repr(e)) from e
    if "parameters" not in table or table.empty or table.index.has_duplicates:
        raise damaged(path, "it does not have one row per seed, with a column parameters")
    return table


def _transformers(folder: Path) -> Mapping[int, nn.Module]:
    return transformers(folder)[1]


def _recall(folder: Path) -> Mapping[int, nn.Module]:
    path = folder / CONFIG
    try:
        stack = RecallStack(**read(path, *RecallStack.model_fields))
    except ValidationError as e:
        raise damaged(path, str(e)) from e
    return weights.load(folder / WEIGHTS, lambda: RecallModel(stack.task, stack.norm))


# studies whose models are no Transformers
READERS: dict[str, Callable[[Path], Mapping[int, nn.Module]]] = {"recall": _recall}


def _jobs(folder: Path) -> dict[str, Path]:
    """Folders of the jobs of a run that have trained models, by ``study.job``.

    Raises:
        Explained: there are none.
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
    """Whether files of a job are those that it wrote.

    Raises:
        Damaged: naming the first that is not.
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
                raise damaged(folder / name, f"it does not fit its line of {SUMS}")
    except OSError as e:
        raise damaged(folder / SUMS, str(e)) from e


def _arm(norm: Any) -> str | None:
    """The arm of the registry that has these factors."""
    return next((name for name, arm in ARMS.items() if arm.norm.model_dump() == norm), None)
