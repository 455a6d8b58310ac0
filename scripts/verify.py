"""Retrain some models of the evidence and compare their final losses with it."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import Field, ValidationError

from normscope.command import parse
from normscope.config import Config
from normscope.cost.machine import chip, usable_cores
from normscope.cost.projection import Reference, jobs, read_reference
from normscope.errors import Explained, run_script
from normscope.io.yamlfile import read_yaml
from normscope.schema import PositiveFloat, Strict
from normscope.statistics.agreement import agreements
from normscope.train.recipe import Seeds

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Flags(Strict):
    """Retrain a random sample of the evidence."""

    evidence: Path = Path("evidence")
    share: float = Field(default=0.1, gt=0, le=1, description="share of the jobs")
    seed: int = Field(default=0, description="seed of the random choice")
    seconds: PositiveFloat = Field(
        default=120, description="longest job, in CPU seconds on the reference machine"
    )
    reference: Path = Path("workflow/costs.yaml")
    results: Path = Field(default=Path("results"), description="directory with dataset and code")


class Job(NamedTuple):
    """A training job of the configuration of the evidence.

    Attributes:
        seconds: CPU time on the reference machine.
    """

    study: str
    name: str
    recipe: Seeds
    seconds: float


def read(folder: Path, name: str) -> Any:
    """The contents of a JSON file of the evidence."""
    if not (folder / name).is_file():
        raise Explained(f"{folder / name} is missing: restore {folder} from git, or make evidence")
    return json.loads((folder / name).read_text())


def configuration(manifest: Mapping[str, Any]) -> Config:
    """The configuration of the evidence.

    Raises:
        Explained: this version of the code cannot read it.
    """
    dataset = read_yaml(Path("config.yaml"))["dataset"]
    try:
        return Config.model_validate({**manifest["config"], "dataset": dataset})
    except ValidationError as e:
        raise Explained(
            "the evidence has the configuration of another version of normscope: check out the"
            f" version that the evidence was committed with, or make evidence\n{e}"
        ) from e


def trainings(config: Config, reference: Reference) -> Iterator[Job]:
    """All training jobs of a configuration."""
    sized = {(job.rule, job.name): job for job in jobs(config)}
    for study, part in config.studies.items():
        for name, recipe in part.trainings().items():
            seconds = reference.seconds(sized[f"{study}_train", name])
            yield Job(study, name, recipe, seconds)


def values(value: Any, name: str = "") -> dict[str, Any]:
    """A nested mapping as a flat one with keys like ``training.steps``."""
    if not isinstance(value, dict):
        return {name: value}
    parts = (values(part, f"{name}.{key}".lstrip(".")) for key, part in value.items())
    return {key: single for part in parts for key, single in part.items()}


def differing(recipe: Seeds, record: Mapping[str, Any] | None) -> list[str]:
    """Differences between a recipe and the record of the same name, except for the device."""
    if record is None:
        return ["the evidence has no training of this name"]
    now, was = values(json.loads(recipe.model_dump_json(exclude={"device"}))), values(record)
    return [f"{key}: {was.get(key)}, now {now[key]}" for key in now if now[key] != was.get(key)]


def check_dataset(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check that the corpus exists and is that of the evidence."""
    if not (folder / "meta.json").is_file():
        raise Explained(f"{folder} is missing: snakemake --cores 1 {folder}/meta.json makes it")
    now = json.loads((folder / "meta.json").read_text())["sha256"]
    was = manifest["dataset"]["sha256"]
    if other := [name for name in ("train.bin", "val.bin") if now[name] != was[name]]:
        raise Explained(
            f"the evidence has another corpus than {folder}: {', '.join(other)}; restore dataset in"
            " config.yaml"
        )


def changed_since(code: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Training scripts whose code or packages changed since the evidence was made."""
    was = {Path(name).name: digest for name, digest in manifest["sources_sha256"].items()}
    now = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in code.glob("*.txt")}
    scripts = sorted(name for name in was if name.endswith("_train.txt"))
    return [name.removesuffix(".txt") for name in scripts if now.get(name) != was[name]]


def train(data: Path, job: Job, out: Path) -> pd.DataFrame:
    """Train a job and return its metrics.csv."""
    recipe = job.recipe.model_dump_json()
    command = [sys.executable, "scripts/train.py", job.study, "--recipe", recipe]
    command += ["--data", str(data), "--out", str(out), "--checkpoints", str(out / "checkpoints")]
    env = os.environ | ONE_THREAD
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Explained(f"{job.study}/{job.name} cannot be trained:\n{done.stderr}")
    return pd.read_csv(out / "metrics.csv")


def counted(verdicts: Mapping[str, int]) -> str:
    """Counts of verdicts as text."""
    return ", ".join(f"{n} {word}" for word, n in verdicts.items())


def compare(chosen: list[Job], evidence: pd.DataFrame, data: Path) -> Counter[str]:
    """Train jobs, print the verdicts of each, and count the verdicts of their models."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(usable_cores()) as pool:
        outs = [Path(folder) / str(i) for i in range(len(chosen))]
        for job, now in zip(chosen, pool.map(partial(train, data), chosen, outs), strict=True):
            was = evidence[(evidence["study"] == job.study) & (evidence["job"] == job.name)]
            verdicts = Counter(agreements(was, now).values())
            counts += verdicts
            print(f"{job.study}/{job.name}: {counted(verdicts)}", flush=True)
    return counts


def main() -> None:
    flags = parse(Flags)
    run, manifest = (read(flags.evidence, f"{name}.json") for name in ("run", "manifest"))
    check_dataset(flags.results / "dataset", manifest)
    every = list(trainings(configuration(manifest), read_reference(flags.reference)))
    records = {study: parts["models"] for study, parts in manifest["studies"].items()}
    others = {
        (job.study, job.name): differing(job.recipe, records[job.study].get(job.name))
        for job in every
    }
    small = [
        job for job in every if not others[job.study, job.name] and job.seconds <= flags.seconds
    ]
    if not small:
        raise Explained("the evidence has no small model whose training is unchanged")
    n = max(1, round(flags.share * len(small)))
    places = pd.Series(range(len(small))).sample(n, random_state=flags.seed)
    chosen = [small[i] for i in places]
    minutes = max(1, round(sum(job.seconds for job in chosen) / 60))
    print(f"evidence: {run['configuration']}, {run['chip']}, {run['date']}; here: {chip()}")
    print(f"{n} of {len(small)} small jobs, about {minutes} CPU minutes", flush=True)
    if scripts := changed_since(flags.results / "code", manifest):
        print(f"code or packages changed since: {', '.join(scripts)}", flush=True)
    counts = compare(chosen, pd.read_csv(flags.evidence / "models.csv"), flags.results / "dataset")
    print(f"{counts.total()} models: {counted(counts)}")
    stale = [f"{study}/{name} ({'; '.join(why)})" for (study, name), why in others.items() if why]
    if stale:
        print(f"{len(stale)} of {len(every)} trainings differ from the evidence: {stale[0]}")
    if stale or counts["differs"] or counts["missing"]:
        sys.exit(1)


if __name__ == "__main__":
    run_script(main)
