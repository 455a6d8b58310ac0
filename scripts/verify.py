"""Retrain some models of the evidence and compare their final losses with it."""

import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, ValidationError

from normscope.command import parse
from normscope.config import Config
from normscope.errors import Explained, run_script
from normscope.io.texts import DATASET, text_folder
from normscope.io.yamlfile import read_yaml
from normscope.machine import chip, usable_cores
from normscope.schema import PositiveFloat, Strict
from normscope.statistics.agreement import agreements
from normscope.studies.single import SingleJob, train_single


class Flags(Strict):
    """Retrain a random sample of the evidence."""

    evidence: Path = Path("evidence")
    share: float = Field(default=0.1, gt=0, le=1, description="share of the jobs")
    seed: int = Field(default=0, description="seed of the random choice")
    flops: PositiveFloat = Field(
        default=5e12, description="floating-point operations of the largest job"
    )
    results: Path = Field(default=Path("results"), description="directory with dataset and code")


def configuration(manifest: Mapping[str, Any]) -> Config:
    """The configuration of the evidence."""
    ours = read_yaml(Path("config.yaml"))
    try:
        return Config.model_validate(
            {**manifest["config"], "dataset": ours["dataset"], "texts": ours["texts"]}
        )
    except ValidationError as e:
        raise Explained(
            "the evidence has the configuration of another version of normscope: check out the"
            f" version that the evidence was committed with, or make evidence\n{e}"
        ) from e


def trainings(config: Config) -> pd.DataFrame:
    """All training jobs: the fields of ``SingleJob``, and their floating-point operations."""
    rows = [
        (study, job, texts.get(job, [DATASET])[0], recipe.model_dump_json(), work[job])
        for study, part in config.studies.items()
        for texts, work in [(part.job_texts(), part.training_flops())]
        for job, recipe in part.trainings().items()
    ]
    return pd.DataFrame(rows, columns=[*SingleJob._fields, "flops"])


def check_text(dataset: Path, name: str, manifest: Mapping[str, Any]) -> None:
    """Check that a text exists and is that of the evidence."""
    folder = text_folder(dataset, name)
    if not (folder / "meta.json").is_file():
        raise Explained(f"{folder} is missing: snakemake --cores 1 {folder}/meta.json makes it")
    now = json.loads((folder / "meta.json").read_text())["sha256"]
    was = {DATASET: manifest["dataset"], **manifest.get("texts", {})}[name]["sha256"]
    if other := [name for name in ("train.bin", "val.bin") if now[name] != was[name]]:
        raise Explained(
            f"the evidence has another corpus than {folder}: {', '.join(other)}; restore it in"
            " config.yaml"
        )


def changed_since(code: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Training scripts whose code or packages changed since the evidence was made."""
    now = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in code.glob("*.txt")}
    was = {
        f"{study}_train": part.get("origin", manifest)["sources_sha256"]
        for study, part in manifest["studies"].items()
    }
    was = {name: sources.get(f"results/code/{name}.txt") for name, sources in was.items()}
    return sorted(name for name, digest in was.items() if digest and now.get(name) != digest)


def counts_text(verdicts: Mapping[str, int]) -> str:
    """Counts of verdicts as text."""
    return ", ".join(f"{n} {word}" for word, n in verdicts.items())


def compare(chosen: pd.DataFrame, evidence: pd.DataFrame, data: Path) -> Counter[str]:
    """Train jobs, print the verdicts of each, and count the verdicts of their models."""
    counts = Counter[str]()
    rows = list(chosen.itertuples())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(usable_cores()) as pool:
        outs = [Path(folder) / str(i) for i in range(len(rows))]
        alone = [SingleJob(*row) for row in chosen[[*SingleJob._fields]].to_numpy()]
        metrics = pool.map(train_single, alone, [data] * len(rows), outs)
        for job, now in zip(rows, map(pd.read_csv, metrics), strict=True):
            was = evidence[(evidence["study"] == job.study) & (evidence["job"] == job.name)]
            verdicts = Counter(agreements(was, now).values())
            counts += verdicts
            print(f"{job.study}/{job.name}: {counts_text(verdicts)}", flush=True)
    return counts


def main() -> None:
    flags = parse(Flags)
    run, manifest = (
        json.loads((flags.evidence / f"{name}.json").read_text()) for name in ("run", "manifest")
    )
    data = flags.results / "dataset"
    for name in (DATASET, *manifest.get("texts", {})):
        check_text(data, name, manifest)
    every = trainings(configuration(manifest))
    small = every[every["flops"] <= flags.flops]
    if small.empty:
        least = every["flops"].min()
        raise Explained(f"no job takes at most {flags.flops:g} flops: the smallest takes {least:g}")
    chosen = small.sample(max(1, round(flags.share * len(small))), random_state=flags.seed)
    where = "; ".join(f"{name}: {r['chip']}, {r['date']}" for name, r in run["studies"].items())
    print(f"evidence: {run['configuration']}, {where}; here: {chip()}")
    print(f"{len(chosen)} of {len(small)} small jobs", flush=True)
    if scripts := changed_since(flags.results / "code", manifest):
        print(f"code or packages changed since: {', '.join(scripts)}", flush=True)
    counts = compare(chosen, pd.read_csv(flags.evidence / "models.csv"), data)
    print(f"{counts.total()} models: {counts_text(counts)}")
    if counts["differs"] or counts["missing"]:
        sys.exit(1)


if __name__ == "__main__":
    run_script(main)
