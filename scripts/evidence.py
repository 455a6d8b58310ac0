"""Keep the results of a run: its ledger, one row per model, and where and when it ran."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.config import Config, Studies, load
from normscope.cost.machine import chip
from normscope.cost.projection import benchmarked, jobs
from normscope.errors import Explained, run_script
from normscope.io.files import write_json, write_text
from normscope.io.git import git
from normscope.io.yamlfile import read_yaml
from normscope.ledger.frozen import DECIDES, Line, read_frozen, read_history
from normscope.pilot import read_project
from normscope.schema import Strict


class Flags(Strict):
    """Copy the tables, figures, ledger and manifest of a run."""

    results: Path = Path("results")
    out: Path = Path("evidence")
    shown: Path = Field(
        default=Path("docs/shown.yaml"), description="additional tables and figures that pages show"
    )
    name: str = Field(default="config/paper.yaml", description="the run's configuration file")


class Shown(Strict):
    """Tables and figures that pages show, in addition to the tables that statements use."""

    tables: Mapping[str, Sequence[str]]
    figures: Sequence[str]


def configuration(name: str, manifest: Mapping[str, Any]) -> Config:
    """The project's configuration with the choices of a file.

    Raises:
        Explained: the run had a different configuration.
    """
    config = load(read_project(Path(), Path(name)))
    if json.loads(config.recorded()) != manifest["config"]:
        raise Explained(
            f"the results are not those of {name}: run snakemake with it, or give the right file"
            " with --name"
        )
    return config


def models(studies: Studies, results: Path) -> Iterator[pd.DataFrame]:
    """Study, job, seed and final metrics of every trained model."""
    for name, study in studies.studies.items():
        for job in study.trainings():
            table = pd.read_csv(results / name / "models" / job / "metrics.csv")
            table.insert(0, "study", name)
            table.insert(1, "job", job)
            yield table


def kept(config: Studies, shown: Shown) -> Iterator[tuple[str, str]]:
    """Pairs of paths, in the results and in the evidence."""
    for name, study in config.studies.items():
        tables = [*study.vocabulary().columns, *shown.tables.get(name, [])]
        for table in dict.fromkeys(tables):
            yield f"{name}/tables/{table}.csv", f"{name}/{table}.csv"
    for figure in shown.figures:
        for kind in ("svg", "txt"):  # the drawing and its caption
            yield f"paper/figures/{figure}.{kind}", f"figures/{figure}.{kind}"
    for file in ("claims.json", "manifest.json"):
        yield f"paper/{file}", file


def ran(results: Path, config: Config) -> dict[str, Any]:
    """Chip, date and core-hours of a run, which its results do not contain."""
    manifest = results / "paper" / "manifest.json"
    planned = set(jobs(config))
    seconds = benchmarked(results / "benchmarks", planned)
    made = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
    return {
        "chip": chip(),
        "date": f"{made:%Y-%m-%d}",
        "core_hours": round(sum(seconds.values()) / 3600, 4),
        "unmeasured_jobs": len(planned - seconds.keys()),
    }


def check_frozen(config: Config, flags: Flags) -> None:
    """Check that a run is the one that was frozen, and that its models are younger.

    Raises:
        Explained: The settings are others, or a model was trained before the freeze.
    """
    path = flags.out / "frozen.json"
    frozen = read_frozen(path)
    if frozen.settings != sha256(config.recorded("figures").encode()).hexdigest():
        raise Explained(f"{path}: other settings were frozen: make freeze, and run {flags.name}")
    if changed := git("diff", "--name-only", frozen.commit, "--", *DECIDES):
        raise Explained(f"these files are not those that {path} froze: freeze again\n{changed}")
    since = float(git("log", "-1", "--format=%ct", "--", str(path)) or "inf")
    for name, study in config.studies.items():
        for job in study.trainings():
            made = flags.results / name / "models" / job / "metrics.csv"
            if made.stat().st_mtime < since:
                raise Explained(
                    f"{made} is older than the commit of {path}, so that its test was not frozen "
                    "before: train on seeds that no earlier run used"
                )


def append_history(flags: Flags) -> None:
    """Append the verdicts of the run to the history, where anything but words has changed."""
    ledger = json.loads((flags.results / "paper" / "claims.json").read_text())
    path, commit = flags.out / "history.jsonl", git("rev-parse", "HEAD")
    lines = read_history(path) if path.exists() else []
    last = {line.statement: line for line in lines}
    with path.open("a") as file:
        for claim in ledger["claims"]:
            kept = {key: claim[key] for key in ("digest", "seeds", "verdict", "n", "p")}
            line = Line(statement=claim["key"], frozen=ledger["frozen"], commit=commit, **kept)
            before = last.get(line.statement)
            if before is None or before.model_copy(update={"commit": commit}) != line:
                file.write(line.model_dump_json() + "\n")


def main() -> None:
    flags = parse(Flags)
    manifest = json.loads((flags.results / "paper" / "manifest.json").read_text())
    config = configuration(flags.name, manifest)
    if (flags.out / "frozen.json").exists():
        check_frozen(config, flags)
    every = pd.concat(list(models(config, flags.results)), ignore_index=True)
    for study in (*config.studies, "figures"):
        shutil.rmtree(flags.out / study, ignore_errors=True)
    for was, now in kept(config, Shown.model_validate(read_yaml(flags.shown))):
        (flags.out / now).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(flags.results / was, flags.out / now)
    write_text(flags.out / "models.csv", every.to_csv(index=False, float_format="%.9g"))
    run = {"configuration": flags.name, **ran(flags.results, config)}
    write_json(flags.out / "run.json", run)
    append_history(flags)
    print(f"{flags.out}: {sum(f.stat().st_size for f in flags.out.rglob('*')) / 1e6:.1f} MB")
    if run["unmeasured_jobs"]:
        print(f"{run['unmeasured_jobs']} jobs have no benchmark file; core-hours exclude them")


if __name__ == "__main__":
    run_script(main)
