"""List, read and load the tables and the trained models of a run; nothing is unpickled."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from normscope import studies
from normscope.api.arguments import public
from normscope.errors import Explained, suggest
from normscope.io.files import SUMS, is_altered
from normscope.io.store import read_sums
from normscope.io.stored import damage, metrics, read
from normscope.nn.arms import ARMS
from normscope.nn.custom import use_class
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import RecallStack
from normscope.train import weights
from normscope.train.trained import transformers

STUDIES = {path.parent.name for path in Path(studies.__path__[0]).glob("*/grid.py")}
WEIGHTS, CONFIG, METRICS = FILES = ("models.safetensors", "config.json", "metrics.csv")
COLUMNS = ["name", "seed", "arm", "placement", "val_loss", "diverged_at", "parameters"]


@public
def tables(results: str | Path = "results") -> list[str]:
    """List the names of the tables of a folder, ``study.table``.

    Args:
        results: folder of a run, or ``evidence``.

    Raises:
        Explained: the folder does not exist or has no tables.
    """
    return list(_tables(results))


@public
def table(name: str, results: str | Path = "results") -> pd.DataFrame:
    """Read a table. Empty cells are missing values; ``NA`` and the like are strings.

    Args:
        name: ``study.table``, such as ``main.chosen``, as in statements and figures.
        results: folder of a run, or ``evidence``.

    Raises:
        Explained: the table does not exist, or (``Damaged``) its file was changed.
    """
    files = _tables(results)
    _check_known("table", name, files, results)
    path = files[name]
    try:
        if is_altered(path):
            raise damage(path, "its SHA-256 differs from the one in the file next to it")
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as e:  # pandas' errors of parsing are ValueErrors
        raise damage(path, repr(e)) from e


@public
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
    for name, folder in _jobs(results).items():
        _check_sums(folder, CONFIG, METRICS)
        config = json.loads((folder / CONFIG).read_text())
        rows = metrics(folder).reset_index()
        rows = rows.assign(name=name, arm=_arm(config["norm"]), placement=config.get("placement"))
        parts.append(rows[COLUMNS])
    return pd.concat(parts, ignore_index=True)


@public
def load(
    name: str,
    seed: int | None = None,
    results: str | Path = "results",
    norm: type[nn.Module] | None = None,
) -> nn.Module:
    """Load a trained model in evaluation mode on the CPU.

    Args:
        name: ``study.job``, as ``models`` lists them.
        seed: seed of the model; a job trains several models, and the first one is the default.
        results: folder of the run.
        norm: the class of its norm, if the norm has code of its own, which runs with your rights.

    Raises:
        Explained: the model does not exist or diverged, its norm has code of its own and the class
            is not given, or (``Damaged``) a file was changed.
    """
    jobs = _jobs(results)
    _check_known("trained model", name, jobs, results)
    folder = jobs[name]
    _check_sums(folder, *FILES)
    steps: dict[Any, Any] = metrics(folder)["diverged_at"].to_dict()
    first: int = next(iter(steps))
    seed = first if seed is None else seed
    _check_known("seed", seed, steps, name)
    if pd.notna(steps[seed]):
        others = [str(other) for other, step in steps.items() if pd.isna(step)]
        raise Explained(
            f"{name}: the model of seed {seed} diverged at step {steps[seed]}, so that there is "
            f"nothing to load; seeds that did not: {', '.join(others) or 'none'}"
        )
    custom = json.loads((folder / CONFIG).read_text())["norm"].get("custom")
    if custom and norm is None:
        raise Explained(
            f"{name}: its norm has code of its own, {custom['name']} ({custom['code']}), which is "
            f"not run unasked: import the class and give norm={custom['name'].rpartition(':')[2]}"
        )
    with _float32(), use_class(norm) if custom and norm else nullcontext():
        if not name.startswith("recall."):
            return transformers(folder)[1][seed]
        stack = RecallStack(**read(folder / CONFIG, *RecallStack.model_fields))
        return weights.load(folder / WEIGHTS, lambda _: RecallModel(stack.task, stack.norm))[seed]


@contextmanager
def _float32() -> Iterator[None]:
    """Build models in float32, whatever type the caller has set for new tensors."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)


def _tables(results: str | Path) -> dict[str, Path]:
    """Tables by name: ``<study>/tables/<table>.csv`` of a run, ``<study>/*.csv`` of evidence."""
    folder = _folder(results)
    paths = sorted(folder.glob("*/tables/*.csv")) or sorted(folder.glob("*/*.csv"))
    named = [(path.relative_to(folder).parts[0], path) for path in paths]
    files = {f"{study}.{path.stem}": path for study, path in named if study in STUDIES}
    if not files:
        raise Explained(f"{folder} has no tables: name the folder of a run, or of evidence")
    return files


def _jobs(results: str | Path) -> dict[str, Path]:
    """Folders of the jobs of a run that have trained models, by ``study.job``."""
    folder = _folder(results)
    jobs = {
        f"{job.parent.parent.name}.{job.name}": job
        for job in sorted(folder.glob("*/models/*"))
        if all((job / name).is_file() for name in FILES)
    }
    if not jobs:
        raise Explained(
            f"{folder} has no trained models: name the folder of a run that trained some"
        )
    return jobs


def _folder(results: str | Path) -> Path:
    folder = Path(results)
    if not folder.is_dir():
        raise Explained(
            f"results: there is no folder {str(folder)!r}; give the folder of a run, such as "
            "'results'"
        )
    return folder


def _check_known(kind: str, name: object, known: Iterable[Any], place: object) -> None:
    """Check that a place has something of this name, or suggest the nearest name."""
    if name not in known:
        raise Explained(f"{place} has no {kind} {name!r}; {suggest(name, known)}")


def _check_sums(folder: Path, *names: str) -> None:
    """Check that files of a job are unchanged, by their SHA-256."""
    try:
        sums = read_sums(folder / SUMS)
        for name in names:
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums.get(name):
                raise damage(folder / name, f"its SHA-256 differs from the one in {SUMS}")
    except OSError as e:
        raise damage(folder / SUMS, str(e)) from e


def _arm(norm: Any) -> str | None:
    """The name of the arm with this norm, or None."""
    return next((name for name, arm in ARMS.items() if arm.norm.model_dump() == norm), None)
