"""Keep the results of a run, or of some of its studies: tables, models, verdicts, and origin."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import Config, load
from normscope.errors import Explained, run_script, suggest
from normscope.io.files import read_json, write_json, write_text
from normscope.io.texts import DATASET
from normscope.io.yamlfile import read_yaml
from normscope.machine import run_record, usable_cores
from normscope.pages import figures
from normscope.pages.statements import effect_of, why
from normscope.pilot import read_project
from normscope.schema import FLOATS, Strict
from normscope.studies.stage import FOLDER
from normscope.studies.statements import load_checked
from normscope.studies.verdicts import verdicts
from normscope.verdicts.document import load as load_claims
from normscope.verdicts.frozen import DECISIVE_PATHS, FROZEN, Frozen, Plan, git, read_frozen
from normscope.verdicts.verdict import read as read_verdicts

MANIFEST, RUN = "manifest.json", "run.json"
CLAIMS = sorted(Path("data/claims").glob("*.yaml"))
TOKENS = ("train.bin", "val.bin")  # of a text; meta.pkl depends on the version of Python
ORIGIN = ("device", "python", "packages", "sources_sha256")  # of results, in a manifest


class Flags(Strict):
    """Finish a run, or some of its studies, and keep its tables, figures, verdicts and manifest."""

    studies: CliPositionalArg[list[str]] = Field(
        default=[], description="the studies to keep; by default those of a whole run"
    )
    results: Path = Path("results")
    out: Path = Path("evidence")
    shown: Path = Field(
        default=Path("docs/shown.yaml"), description="additional tables and figures that pages show"
    )
    name: str = Field(default="config/paper.yaml", description="the run's configuration file")
    judge: bool = Field(
        default=False, description="judge the kept tables again, as after changed words"
    )
    draw: bool = Field(default=False, description="draw the figures of the kept tables again")


class PageResults(Strict):
    """Tables and figures that pages show, in addition to the tables that statements use."""

    tables: Mapping[str, Sequence[str]]
    figures: Sequence[str]


def read_shown(path: Path, config: Config) -> PageResults:
    """Read what pages show."""
    shown = PageResults.model_validate(read_yaml(path))
    known = figures.load(FOLDER, config.studies)
    names = [(f"figures: {name}", name, known) for name in shown.figures]
    names += [(f"tables.{study}", study, config.studies) for study in shown.tables]
    names += [
        (f"tables.{study}: {table}", table, config.studies[study].TABLES)
        for study, tables in shown.tables.items()
        if study in config.studies
        for table in tables
    ]
    for place, name, given in names:
        if name not in given:
            raise Explained(f"{path}: {place} is unknown; {suggest(name, given)}")
    return shown


def check_frozen(config: Config, study: str, frozen: Frozen, flags: Flags) -> None:
    """Check that a study's settings and code are those that were frozen.

    A file that had to be repaired during the run is named in the README of ``out``.
    """
    path, readme = flags.out / FROZEN, flags.out / "README.md"
    if git("status", "--porcelain", "--", str(path)):
        raise Explained(f"commit {path} before the run: its commit tells when it was frozen")
    if frozen.settings != config.digests[study]:
        raise Explained(
            f"{path}: other settings of {study} were frozen: make freeze STUDIES={study}, and run "
            f"{flags.name}"
        )
    excused = readme.read_text() if readme.is_file() else ""
    differ = git("diff", "--name-only", frozen.commit, "--", *DECISIVE_PATHS).splitlines()
    if changed := "\n".join(file for file in differ if f"`{file}`" not in excused):
        raise Explained(
            f"these files are not those that {path} froze: freeze again, or name them in {readme} "
            f"with what was repaired and why\n{changed}"
        )


def check_ages(config: Config, study: str, flags: Flags) -> None:
    """Check that models are younger than the freeze, which shows mistakes and not forgery."""
    path = flags.out / FROZEN
    since = float(git("log", "-1", "--format=%ct", "--", str(path)))
    for job in config.studies[study].trainings():
        made = flags.results / study / "models" / job / "metrics.csv"
        if made.stat().st_mtime < since:
            raise Explained(
                f"{made} is older than the commit of {path}, so that its test was not frozen "
                "before: train on seeds that no earlier run used"
            )


def figure_names(config: Config, studies: Collection[str], shown: PageResults) -> list[str]:
    """The figures that pages show and that the tables of these studies alone determine."""
    entries = figures.select_figures(figures.load(FOLDER, config.studies), config)
    return [
        name
        for name in shown.figures
        if name in entries and {t.study for t in entries[name].sources.values()} <= set(studies)
    ]


def finish(config: Config, studies: Sequence[str], flags: Flags, shown: PageResults) -> None:
    """Make what is missing of some studies, for the results of the configuration."""
    targets = [
        "texts",
        *studies,
        *(f"figure_{name}" for name in figure_names(config, studies, shown)),
    ]
    command = ["snakemake", *targets, "--cores", str(usable_cores()), "--configfile", flags.name]
    if subprocess.run(command, check=False).returncode:
        raise Explained(f"these studies are not finished: {' '.join(command)}")


def keep_models(config: Config, studies: Collection[str], flags: Flags) -> None:
    """Write study, job, seed and final metrics of every model; rows of other studies stay."""
    path = flags.out / "models.csv"
    files = {
        (name, job): flags.results / name / "models" / job / "metrics.csv"
        for name in studies
        for job in config.studies[name].trainings()
    }
    tables = [read_models(file).assign(study=s, job=job) for (s, job), file in files.items()]
    if path.is_file():
        kept = read_models(path)
        tables.append(kept[~kept["study"].isin(list(studies))])
    order = {name: i for i, name in enumerate(config.studies)}
    every = pd.concat(tables).sort_values("study", key=lambda s: s.map(order), kind="stable")
    columns = dict.fromkeys(["study", "job", *every])
    write_text(path, every[[*columns]].to_csv(index=False, float_format=f"%{FLOATS}"))


def read_models(path: Path) -> pd.DataFrame:
    """A table with one row per model."""
    return pd.read_csv(path, dtype={"diverged_at": "Int64"})


def keep_tables(studies: Collection[str], flags: Flags, shown: PageResults) -> None:
    """Copy every table that statements may use or pages show."""
    used = {table for _, _, statement in load_claims(CLAIMS) for table in statement.tables}
    used |= {f"{study}.{table}" for study, tables in shown.tables.items() for table in tables}
    for name in studies:
        shutil.rmtree(flags.out / name, ignore_errors=True)
    for study, _, table in (name.partition(".") for name in used):
        if study in studies:
            (flags.out / study).mkdir(parents=True, exist_ok=True)
            shutil.copy(flags.results / study / "tables" / f"{table}.csv", flags.out / study)


def keep_figures(names: Collection[str], flags: Flags) -> None:
    """Copy figures, and collect their captions."""
    folder, path = flags.results / "paper/figures", flags.out / "figures/captions.json"
    captions = read_json(path) if path.is_file() else {}
    path.parent.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(folder / f"{name}.svg", path.parent)
        captions[name] = (folder / f"{name}.txt").read_text().strip()
    write_json(path, captions)


def draw_kept(config: Config, flags: Flags, shown: PageResults) -> None:
    """Draw the figures whose tables are kept; the others stay as they are."""
    entries = figures.load(FOLDER, config.studies)
    look = config.figures.model_dump() | {"level": config.level}
    with tempfile.TemporaryDirectory() as folder:
        drawn = []
        for name in shown.figures:
            entry, out = entries[name], Path(folder, "paper/figures", name)
            paths = {key: flags.out / t.study / f"{t.name}.csv" for key, t in entry.sources.items()}
            if not all(path.is_file() for path in paths.values()):
                continue
            tables = ",".join(f"{key}={path}" for key, path in paths.items())
            command = [sys.executable, "scripts/draw.py", entry.study, name, "--tables", tables]
            command += ["--params", json.dumps(entry.values(config)), "--look", json.dumps(look)]
            command += ["--caption", entry.caption, "--out", str(out)]
            subprocess.run(command, check=True)
            drawn.append(name)
        keep_figures(drawn, flags.model_copy(update={"results": Path(folder)}))


def manifest_of(config: Config, studies: Sequence[str], results: Path) -> dict[str, Any]:
    """The manifest of some studies, as ``scripts/manifest.py`` writes that of all."""
    code = [results / "code" / "dataset.txt"]
    code += [path for name in studies for path in (results / "code").glob(f"{name}_*.txt")]
    files = [*code, *Path("data").glob("*.*"), *Path("data/claims").glob("*.yaml")]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, MANIFEST)
        command = [sys.executable, "scripts/manifest.py", *map(str, sorted(files))]
        command += ["--config", config.settings_json(), "--studies", ",".join(studies)]
        command += ["--results", str(results), "--dataset", str(results / "dataset/meta.json")]
        subprocess.run([*command, "--project", ".", "--out", str(out)], check=True)
        return read_json(out)


def sums(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """The hashes of the tokens of every text that a run read."""
    texts = {DATASET: manifest["dataset"], **manifest.get("texts", {})}
    return {name: [text["sha256"][file] for file in TOKENS] for name, text in texts.items()}


def merge(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of the kept studies and of those that replace some of them.

    The facts at the top are those of ``now``; ``origin`` of every other study has those of its run.
    """
    again = now["studies"].keys()
    was, read = (sums(manifest) for manifest in (before, now))
    if any(was[name] != text for name, text in read.items() if name in was) or (
        before["config"]["level"] != now["config"]["level"]
    ):
        raise Explained("the kept studies have other texts or another level: keep a whole run")
    config = before["config"] | {key: now["config"][key] for key in (*again, "figures")}
    origin = {key: before[key] for key in ORIGIN}
    kept = {k: {"origin": origin, **v} for k, v in before["studies"].items() if k not in again}
    # the digest of a configuration is that of one run
    facts = {key: value for key, value in now.items() if key != "config_sha256"}
    texts = {**before.get("texts", {}), **now["texts"]}
    return {**facts, "config": config, "texts": texts, "studies": {**kept, **now["studies"]}}


def keep_manifest(config: Config, studies: Sequence[str], flags: Flags) -> None:
    """Write the manifest, and where and when each study ran."""
    path, run = flags.out / MANIFEST, flags.out / RUN
    manifest = manifest_of(config, studies, flags.results)
    whole = merge(read_json(path), manifest) if path.is_file() else manifest
    write_text(
        path, json.dumps(whole, sort_keys=True)
    )  # a record per model: indented, it is twice as large
    runs = read_json(run)["studies"] if run.is_file() else {}
    now = {name: run_record(config.studies[name], flags.results) for name in studies}
    write_json(run, {"configuration": flags.name, "studies": runs | now})
    if unmeasured := sum(one["unmeasured_jobs"] for one in now.values()):
        print(f"{unmeasured} jobs have no benchmark file; core-hours exclude them")


def judge(config: Config, flags: Flags) -> None:
    """Write the verdicts that follow from the kept tables, and print those that are other ones."""
    claims = load_checked(CLAIMS, config.studies)
    plan = Plan(config.digests, read_frozen(flags.out))
    folders = {name: flags.out / name for name in config.studies}
    path = flags.out / "claims.json"
    before = read_verdicts(path).by_key if path.is_file() else {}
    now = verdicts(claims, config.studies, config.level, folders, plan)
    now.write(path)
    for key, one in now.by_key.items():
        if key not in before or one.word != before[key].word:
            reason = f"{effect_of(one)} (n = {one.main.n}); " * bool(one.main.n) + why(one)
            print(f"{key}: {one.word}: {reason}")


def main() -> None:
    flags = parse(Flags)
    config = load(read_project(Path(), Path(flags.name)))
    for name in flags.studies:
        if name not in config.studies:
            raise Explained(f"{name} is not a study; {suggest(name, config.studies)}")
    studies = [name for name in config.studies if name in (flags.studies or config.studies)]
    shown = read_shown(flags.shown, config)
    if flags.draw:
        draw_kept(config, flags, shown)
    if not (flags.judge or flags.draw):
        frozen = {k: one for k, one in read_frozen(flags.out).items() if k in studies}
        for name, one in frozen.items():
            check_frozen(config, name, one, flags)
        finish(config, studies, flags, shown)
        for name in frozen:
            check_ages(config, name, flags)
        keep_manifest(config, studies, flags)
        keep_models(config, studies, flags)
        keep_tables(studies, flags, shown)
        keep_figures(figure_names(config, studies, shown), flags)
    judge(config, flags)


if __name__ == "__main__":
    run_script(main)
