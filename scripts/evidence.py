"""Keep what a run found: its ledger, a row for every model, and where and when it ran."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import Field

from normscope.command import parse
from normscope.config import Config, Studies
from normscope.cost.benchmarks import measured
from normscope.cost.machine import chip
from normscope.errors import report
from normscope.io.files import write_json, write_text
from normscope.schema import Strict

# beside those that statements are of: what README and docs show
SHOWN = {
    "main": ["arms"],
    "recall": ["cells"],
    "jacobian": ["costs"],
    "depth": ["by_shape"],
    "pretrained": ["by_model", "h25_models", "by_norm"],
}


class Flags(Strict):
    """Copy the tables, ledger and manifest of a run."""

    results: Path = Path("results")
    out: Path = Path("evidence")
    name: str = Field(default="config/paper.yaml", description="the run's configuration file")


def models(studies: Studies, results: Path) -> Iterator[pd.DataFrame]:
    """Of every trained model its study, job, seed and what its training ended with."""
    for name, study in studies.studies.items():
        for job in study.trainings():
            table = pd.read_csv(results / name / "models" / job / "metrics.csv")
            yield table.assign(study=name, job=job)


def ran(results: Path, manifest: Path, config: Config) -> dict[str, Any]:
    """Where, when and for how long a run was: of what no tracked table may say."""
    seconds = measured(results / "benchmarks", manifest, config)
    made = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
    return {"chip": chip(), "date": f"{made:%Y-%m-%d}", "core_hours": sum(seconds.values()) / 3600}


def main() -> None:
    flags = parse(Flags)
    paper = flags.results / "paper"
    raw = json.loads((paper / "manifest.json").read_text())["config"]
    dataset = yaml.safe_load(Path("config.yaml").read_text())["dataset"]
    config = Config.model_validate({**raw, "dataset": dataset})
    part = flags.out.with_name(f".{flags.out.name}.tmp")
    shutil.rmtree(part, ignore_errors=True)
    for name, study in config.studies.items():
        tables = [*study.vocabulary().columns, *SHOWN.get(name, [])]
        (part / name).mkdir(parents=True)
        for table in dict.fromkeys(tables):
            shutil.copyfile(
                flags.results / name / "tables" / f"{table}.csv", part / name / f"{table}.csv"
            )
    every = pd.concat(list(models(config, flags.results)), ignore_index=True)
    order = ["study", "job", *(c for c in every if c not in ("study", "job"))]
    write_text(part / "models.csv", every[order].to_csv(index=False, float_format="%.9g"))
    for file in ("claims.json", "manifest.json"):
        shutil.copyfile(paper / file, part / file)
    run = {"configuration": flags.name, **ran(flags.results, paper / "manifest.json", config)}
    write_json(part / "run.json", run)
    shutil.rmtree(flags.out, ignore_errors=True)
    part.rename(flags.out)
    print(f"{flags.out}: {sum(f.stat().st_size for f in flags.out.rglob('*')) / 1e6:.1f} MB")


if __name__ == "__main__":
    report(main)
