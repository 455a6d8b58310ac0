"""What jobs read, and what runs again after a change of settings, code, files or packages."""

import json
import re
import shlex
from copy import deepcopy
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import DRAWN, ROOT, RULES, STAGES, TRAINED, Project, records

from normscope.io.pins import pins_of
from normscope.io.provenance import closure, code_digest

TABLE = yaml.safe_load(Path(__file__).with_name("reruns.yaml").read_text())
ROUNDS = [[row] for row in TABLE["config"]]
ROUNDS += [[*filter(None, rows)] for rows in zip_longest(*TABLE["studies"].values())]
RECORDS = {"claims", "manifest"}  # they record settings that decide nothing else
JOB = re.compile(r"^ *rule (\w+):\n((?: +[a-z].*\n)+)", re.MULTILINE)
DVC = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


def first(plan: str) -> set[str]:
    """The jobs of a dry run of which no input is made again, by rule and name.

    All other jobs of the dry run read what these make.
    """
    jobs = set()
    for rule, about in JOB.findall(plan):
        if "Input files updated by another job" not in about:
            name = re.search(r"wildcards: name=(.*)", about)
            jobs.add(f"{rule} {name[1]}" if name else rule)
    return jobs


def with_change(config: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A configuration with other values at dotted keys."""
    config = deepcopy(config)
    for key, new in change.items():
        node: Any = config
        *path, last = (int(part) if part.isdigit() else part for part in key.split("."))
        for part in path:
            node = node[part]
        if isinstance(last, int) and last == len(node):
            node.append(new)
        else:
            node[last] = new
    return config


def value(config: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        config = config[part]
    return config


@pytest.mark.parametrize("rows", ROUNDS, ids=lambda rows: str([*rows[0]["change"]]))
def test_a_changed_configuration_reruns_the_jobs_that_it_decides(
    made: Project, rows: list[dict[str, Any]]
):
    text = (made.root / "config.yaml").read_text()
    before = yaml.safe_load(text)
    after = with_change(before, {k: new for row in rows for k, new in row["change"].items()})
    with made.edited("config.yaml", text, yaml.safe_dump(after, sort_keys=False)):
        jobs = first(made.snakemake("-n")) - RECORDS
    patterns = [pattern for row in rows for pattern in row["jobs"]]
    for pattern in patterns:
        assert any(fnmatch(job, pattern) for job in jobs), f"{pattern} is missing from {jobs}"
    assert {job for job in jobs if not any(fnmatch(job, p) for p in patterns)} == set()
    (files,) = DVC["runs"]["params"]
    seen = [key for key in files["config.yaml"] if value(before, key) != value(after, key)]
    for row in rows:  # what trains is in the keys that make DVC enter the stage that trains
        if {pattern.split()[0] for pattern in row["jobs"]} & TRAINED:
            assert any(changes(row, key) for key in seen), row


def changes(row: dict[str, Any], key: str) -> bool:
    """Whether a row changes a value at or below a key."""
    return any(f"{path}.".startswith(f"{key}.") for path in row["change"])


def test_rules_read_the_files_that_the_table_names(made: Project, dag: list[dict[str, str]]):
    readers: dict[str, set[str]] = {}
    for row in dag:
        for path in row["input-file(s)"].split(","):
            readers.setdefault(path, set()).add(row["rule"])
    used = set()
    for path in made.run("git", "ls-files").splitlines():
        patterns = [pattern for pattern in TABLE["files"] if fnmatch(path, pattern)]
        expected = {rule for pattern in patterns for rule in TABLE["files"][pattern]}
        assert readers.get(path, set()) == expected, path
        used |= set(patterns)
    assert used == set(TABLE["files"])


def test_a_record_of_code_covers_the_script_and_the_module_of_its_rule(
    made: Project, dag: list[dict[str, str]]
):
    """The next test shows that a job loads no module that its record does not cover."""
    recorded = {row["rule"]: records(row["input-file(s)"]) for row in dag}
    del recorded["manifest"]  # it lists the records of all rules
    for rule, paths in recorded.items():
        if rule.startswith("figure_") and rule.removeprefix("figure_") not in DRAWN:
            continue  # another drawing stands in its place
        files = closure(*RULES[rule])
        (path,) = paths
        pins = pins_of(files, ROOT / "constraints.txt")
        assert (made.root / path).read_text().splitlines() == [code_digest(files), pins], rule


@pytest.mark.parametrize(
    ("path", "old", "new", "rules"),
    [
        (
            "src/normscope/nn/norms.py",
            "self.alpha * x",
            "x * self.alpha",
            {"*_train", "main_probe"},
        ),
        (
            "src/normscope/studies/main/figures/loss.py",
            "protocol=key)",
            "protocol=str(key))",
            {"figure_loss"},
        ),
        ("constraints.txt", "\nmatplotlib==", "\nmatplotlib==0.", {"figure_*"}),
    ],
)
def test_changed_code_and_packages_rerun_the_rules_that_import_them(
    made: Project, path: str, old: str, new: str, rules: set[str]
):
    with made.edited(path, old, new):
        jobs = {job.split()[0] for job in first(made.snakemake("-n"))} - {"manifest"}
    assert jobs == {rule for rule in RULES if any(fnmatch(rule, name) for name in rules)}


def test_comments_and_touched_files_rerun_nothing(made: Project):
    """In all scripts, modules, rules, documents and settings."""
    read = {pattern for pattern in TABLE["files"] if not pattern.endswith(".py")}
    tracked = [made.root / path for path in made.run("git", "ls-files").splitlines()]
    edited = [
        path
        for path in tracked
        if path.suffix in {".py", ".smk", ".md", ".yaml", ".txt", ""}
        and not any(fnmatch(str(path.relative_to(made.root)), pattern) for pattern in read)
    ]
    before = {path: path.read_bytes() for path in edited}
    try:
        for path, content in before.items():
            path.write_bytes(content + b"\n# changed\n")
        for path in (made.root / "results").rglob("*"):
            path.touch()
        assert made.planned() == {}
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def test_a_new_arm_needs_one_row_and_one_word_of_configuration(made: Project):
    last = '    Row("none",'
    row = '    Row("half", "Half affine", BA16, _token(center=True, bias=True, eps=1e-4)),\n'
    with (
        made.edited("src/normscope/nn/arms.py", last, row + last),
        made.edited("config.yaml", "    - layernorm\n", "    - layernorm\n    - half\n"),
    ):
        planned = made.planned()
        assert (planned["main_train"], planned["main_probe"]) == (1, 1)  # of two seeds


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
        if name.split()[0] in ("claims", "render"):  # statements and pages may use any table
            unread = {path for path in unread if "/tables/" not in path}
        assert unread == set(), f"{name} does not read what it declares"
