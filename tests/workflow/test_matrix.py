"""For every input of the workflow: what runs again when it changes, exactly.

The table in matrix.yaml states it; a change that it does not name fails here.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml
from dryruns import DryRun, Plan
from imports import imported
from project import ROOT, Project
from rules import RULES, SCRIPTS, same_command
from stages import TRAINED, entered, entered_by
from table import TABLE, cases, cases_from_another, changed, given, leaves

from normscope.config import Config, ConfigError, load

pytestmark = pytest.mark.long

NO_RULE = {"publish", "prune", "evidence", "verify"}
PRINTS = {"cost"}  # and makes no file
MODULES = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "src").rglob("*.py"))
SECTIONS = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("src/normscope/studies/*/section.md"))
REGISTRIES = {
    str(path.relative_to(ROOT)): [rule]
    for rule, file in {"frame": "figures", "metrics": "metrics"}.items()
    for path in ROOT.glob(f"src/normscope/studies/*/{file}.yaml")
}
FILES = TABLE["files"] | REGISTRIES | {path: ["render"] for path in SECTIONS}


def read_by(rule: str) -> tuple[frozenset[str], frozenset[str]]:
    """Modules of ours and packages of others that the code of a rule imports."""
    return imported(*RULES[rule])


def named(plan: Plan, patterns: list[str]) -> set[str]:
    """The jobs that patterns stand for; one for none is a mistake in the table."""
    names = set()
    for pattern in patterns:
        jobs = {job for job in plan.needs if fnmatch(job, pattern)}
        assert jobs, f"no job matches {pattern}: {sorted(plan.needs)}"
        names |= jobs
    return names


def of_rules(plan: Plan, rules: set[str]) -> set[str]:
    return {job for job in plan.needs if job.split()[0] in rules}


def with_manifest(plan: Plan, rules: set[str]) -> set[str]:
    """The jobs of rules whose code is another, and the manifest, which has its digests."""
    jobs = of_rules(plan, rules - NO_RULE)
    return jobs | {"manifest"} if jobs else jobs


def wants(plan: Plan, first: set[str]) -> None:
    """A plan is to run these jobs and what follows from them: none missing, none needless."""
    expected = plan.after(first)
    assert plan.wanted - expected == set(), "needless"
    assert expected - plan.wanted == set(), "missing"


def stages_fit(plan: Plan, stages: set[str], names: Iterable[str]) -> None:
    """DVC enters the stage of every job that is to run, and one in vain where the table says so."""
    dvc = TABLE["dvc"]
    if any(fnmatch(name, pattern) for name in names for pattern in dvc["unseen"]):
        assert not stages
        return
    jobs = {"runs": of_rules(plan, TRAINED) & plan.wanted, "paper": plan.wanted}
    for stage, rerun in jobs.items():
        assert not rerun or stage in stages, f"{stage} is not entered"
        if stage in stages and not rerun:
            in_vain = [n for n in names if any(fnmatch(n, p) for p in dvc["in_vain"][stage])]
            assert in_vain, f"{stage} is entered in vain"


@pytest.fixture(scope="module")
def project(made: Project) -> Project:
    """The made project, with a dataset in nanoGPT's format."""
    tokens = made.root / "tokens"
    tokens.mkdir(exist_ok=True)
    for name in ("train.bin", "val.bin", "meta.pkl"):
        shutil.copy(made.root / "results/dataset" / name, tokens)
    return made


@pytest.fixture(scope="module")
def config(project: Project) -> dict[str, Any]:
    return yaml.safe_load((project.root / "config.yaml").read_text())


@pytest.fixture(scope="module")
def configured(project: Project) -> DryRun:
    return DryRun(project.root, project.env, "config")


@pytest.fixture(scope="module")
def known(project: Project) -> DryRun:
    waiting = DryRun(project.root, project.env, "content")
    assert waiting.plan().wanted == set()  # before any change
    return waiting


@contextmanager
def content(project: Project, path: str, more: bytes = b"\n# changed\n") -> Iterator[None]:
    """A file with more at its end while the body runs: another comment, or byte."""
    file = project.root / path
    before = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(before + more)
    try:
        yield
    finally:
        file.write_bytes(before)


def test_nothing_is_left_to_do(configured: DryRun, known: DryRun, config: dict[str, Any]):
    assert configured.plan(config).wanted == set()
    assert known.plan().wanted == set()


@pytest.mark.parametrize(("change", "jobs"), list(cases()))
def test_configuration(
    configured: DryRun, config: dict[str, Any], change: dict[str, Any], jobs: list[str]
):
    other = changed(config, change)
    plan = configured.plan(other)
    wants(plan, named(plan, jobs))
    stages_fit(plan, entered_by(config, other), change)


@pytest.mark.parametrize(("base", "change", "jobs"), list(cases_from_another()))
def test_changes_of_another_configuration(
    configured: DryRun,
    config: dict[str, Any],
    base: dict[str, Any],
    change: dict[str, Any],
    jobs: list[str],
):
    """Of two configurations, neither of which was made: what decides a job is the same, or not."""
    first = changed(config, base)
    before, after = configured.plan(first), configured.plan(changed(first, change))
    other = {job for job, by in after.decided_by.items() if before.decided_by.get(job) != by}
    # a job that is new has readers whose inputs are other ones
    new = set(after.needs) - set(before.needs)
    readers = {job for job, needs in after.needs.items() if new & set(needs)}
    assert other - readers - new == named(after, jobs) - readers - new
    assert new <= named(after, jobs)


@pytest.mark.parametrize(("key", "value"), TABLE["refused"].items())
def test_refused(config: dict[str, Any], key: str, value: Any):
    with pytest.raises(ConfigError):
        load(changed(config, {key: value}))


def shared(key: str) -> str:
    """A key of the model or training without the protocol; recipes contain both as a whole."""
    return re.sub(r"^.*\b(?=(model|training)\.)", "", key)


def test_every_key_of_the_configuration_is_in_the_table():
    changes = [case.values[0] for case in cases()]
    changes += [case.values[1] for case in cases_from_another()] + [TABLE["refused"]]
    keys = {k for change in changes for key, value in change.items() for k in given(key, value)}
    schema = Config.model_json_schema()
    keys = {shared(key) for key in keys}
    for leaf in map(shared, leaves(schema, schema["$defs"])):
        pattern = re.compile(leaf.removesuffix(".*").replace(".", r"\.").replace("*", "[^.]+"))
        assert any(pattern.fullmatch(key) for key in keys), leaf


@pytest.mark.parametrize(("path", "jobs"), FILES.items())
def test_file(project: Project, known: DryRun, path: str, jobs: list[str]):
    with content(project, path):
        plan = known.plan()
    wants(plan, named(plan, jobs))
    stages_fit(plan, entered(path), [path])


def source_files() -> list[str]:
    return [*MODULES, *(str(path.relative_to(ROOT)) for path in SCRIPTS.values())]


def test_a_comment_runs_nothing(project: Project, configured: DryRun):
    """In every script and module."""
    with ExitStack() as edits:
        for path in source_files():
            edits.enter_context(content(project, path))
        plan = configured.plan()
    wants(plan, set())


@pytest.mark.parametrize("path", source_files())
def test_a_changed_line_runs_what_rests_on_it(project: Project, configured: DryRun, path: str):
    with content(project, path, b"\n_CHANGED = 1\n"):
        plan = configured.plan()
    rules = {rule for rule, files in RULES.items() if ROOT / path in files}
    rules |= {rule for rule in RULES if path in read_by(rule)[0]}
    wants(plan, with_manifest(plan, rules))
    stages_fit(plan, entered(path), [path])


@pytest.mark.parametrize(("package", "importable"), TABLE["pins"].items())
def test_pin(project: Project, configured: DryRun, package: str, importable: list[str]):
    constraints = project.root / "constraints.txt"
    before = constraints.read_text()
    other, n = re.subn(rf"^{package}==.*$", f"{package}==0.0", before, flags=re.M | re.I)
    assert n == 1
    constraints.write_text(other)
    try:
        plan = configured.plan()
    finally:
        constraints.write_text(before)
    rules = {rule for rule in RULES if set(importable) & read_by(rule)[1]}
    wants(plan, with_manifest(plan, rules))


@pytest.mark.parametrize("rule", sorted(RULES.keys() - NO_RULE - PRINTS))
def test_command_of_a_rule(project: Project, configured: DryRun, rule: str):
    call = f'python "$NORMSCOPE/scripts/{RULES[rule][0].name}"'
    files = sorted((project.root / "workflow/rules").glob("*.smk"))
    (file,) = (file for file in files if call in file.read_text())
    path = str(file.relative_to(project.root))
    with project.edited(path, call, f"{call} --other"):
        plan = configured.plan()
    wants(plan, of_rules(plan, same_command(rule)))
    assert entered(path) >= ({"runs"} if rule in TRAINED else set())


def test_what_is_no_input_decides_nothing(project: Project):
    """Comments of the wiring, resources, profiles, documents."""
    wiring = ["Snakefile", "profiles/default/config.yaml", "config.yaml", "constraints.txt"]
    rules = sorted((project.root / "workflow/rules").glob("*.smk"))
    named = {*FILES, *source_files(), "dvc.yaml"}
    tracked = set(project.run("git", "ls-files").splitlines())
    read = ("data/", "src/", "scripts/", "workflow/report/")
    models = ("workflow/rules/", "tiny_model/", "other_model/")
    others = sorted(path for path in tracked - named if not path.startswith(models))
    assert [path for path in others if path.startswith(read)] == []
    edited = {project.root / path: (project.root / path).read_bytes() for path in others}
    edited |= {path: path.read_bytes() for path in rules}
    assert {project.root / path for path in wiring} <= set(edited)
    try:
        for path, before in edited.items():
            path.write_bytes(before.replace(b"mem_mb=1000,", b"mem_mb=1001,") + b"\n# changed\n")
        assert project.planned() == {}
    finally:
        for path, before in edited.items():
            path.write_bytes(before)
