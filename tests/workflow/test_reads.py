"""Each job reads the files that its rule declares, all of them and no others."""

import json
import shlex
from pathlib import Path

import pytest
from project import ROOT, Project
from rules import RULES, STAGES

from normscope.io.provenance import closure

DOOR = "src/normscope/__init__.py"  # for users; it imports lazily and determines no result
BY_CONFIGURATION = ("corpus.txt", "tiny_model/", "other_model/")  # named there, not by a rule
OWN = (".snakemake/", "results/weights/tmp")  # the last: weights that a probe offloads
SUMS = {"results/dataset/meta.json"}  # read to check what is declared
OTHERS = (".safetensors", ".html", ".lua", ".typ")
CODE = "results/code/"  # a digest of all modules of a job's script


@pytest.fixture(scope="module")
def read(made: Project) -> dict[str, set[str]]:
    """Files of the project that Python opened, by job."""
    paths: dict[str, set[str]] = {}
    for line in (made.root / "results/read.jsonl").read_text().splitlines():
        record = json.loads(line)
        paths.setdefault(job(record["job"]), set()).update(record["read"])
    return paths


def job(words: list[str]) -> str:
    """Script, its study, and where its results go, whatever the environment adds."""
    out = words[words.index("--out") + 1] if "--out" in words else ""  # publish has none
    script = words[0].rpartition("scripts/")[2].removesuffix(".py")
    study = words[1] if script in {*STAGES.values(), "draw"} else ""
    return f"{script} {study} {out}"


def modules(script: str, study: str, out: str) -> set[str]:
    """The files that the digest of a script's code is of."""
    (module, *_) = [m for m, name in STAGES.items() if name == script] or [script]
    rule = f"{study}_{module}" if study else script
    rule = f"figure_{Path(out).name}" if script == "draw" else rule
    files = RULES.get(rule) or [ROOT / "scripts" / f"{script}.py"]
    return {DOOR} | {str(path.relative_to(ROOT)) for path in closure(*files)}


def test_jobs_read_what_they_declare(dag: list[dict[str, str]], read: dict[str, set[str]]):
    declared: dict[str, set[str]] = {}
    made: dict[str, set[str]] = {}
    for row in dag:
        words = shlex.split(row["shellcmd"].partition(" &>")[0])
        name = job(words[words.index("python") + 1 :])
        declared.setdefault(name, set()).update(row["input-file(s)"].split(","))
        made.setdefault(name, set()).add(row["output_file"])
    for name, files in declared.items():
        others = {p for p in read[name] - made[name] if not p.startswith(BY_CONFIGURATION + OWN)}
        others -= modules(*name.split(" "))
        # a seal of a folder reads what the job wrote
        others = {p for p in others if not any(Path(p).is_relative_to(own) for own in made[name])}
        assert others - files - SUMS == set(), f"{name} reads what it does not declare"
        # weights and pandoc's templates are not opened by Python
        unread = {path for path in files - read[name] if not path.endswith(OTHERS)}
        unread = {path for path in unread if not path.startswith(CODE)}
        if name.split()[0] in ("claims", "frame"):  # statements and pages may use any table
            unread = {path for path in unread if "/tables/" not in path}
        assert unread == set(), f"{name} does not read what it declares"
