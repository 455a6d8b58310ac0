"""Run from another folder, and inside of another workflow: the checkout is only read."""

import re
from pathlib import Path

import yaml
from project import Project, stats

PARENT = """
configfile: "choices.yaml"

rule parents:
    input:
        "rows.txt",

module norm:
    snakefile:
        "{checkout}/Snakefile"
    config:
        config["norm"]

use rule * from norm as norm_*

use rule claims from norm as norm_claims with:
    benchmark:
        "own.tsv"

rule rows:
    input:
        "results/main/tables/chosen.csv",
    output:
        "rows.txt",
    shell:
        "wc -l < {input} > {output}"
"""


def user(made: Project, folder: Path) -> Project:
    """A folder with data and choices of a user, without the project's files."""
    folder.mkdir()
    for name in ("corpus.txt", "tiny_model", "other_model", "config.yaml"):
        (folder / name).symlink_to(made.root / name)
    return Project(folder)


def state(checkout: Project) -> dict[str, int]:
    """Every file of a checkout, with the time of its last change."""
    paths = (p for p in checkout.root.rglob("*") if "__pycache__" not in p.parts)
    return {str(path): path.lstat().st_mtime_ns for path in paths}


def test_two_at_once_elsewhere_make_the_same_tables_of_one_checkout(made, tmp_path):
    checkout = made.copy(tmp_path / "Kim's 1st & $HOME")
    elsewhere, parent = (user(made, tmp_path / name) for name in ("else where", "parent"))
    (parent.root / "Snakefile").write_text(PARENT.replace("{checkout}", str(checkout.root)))
    choices = yaml.safe_load((parent.root / "config.yaml").read_text())
    del choices["level"], choices["figures"]  # what is left out is as in the project
    (parent.root / "config.yaml").unlink()
    (parent.root / "choices.yaml").write_text(yaml.safe_dump({"norm": choices}))
    before = state(checkout)
    snakefile = ("--snakefile", str(checkout.root / "Snakefile"))
    filled = ("env", f"SNAKEMAKE_OUTPUT_CACHE={made.root / 'store'}")  # models are trained once
    runs = [
        elsewhere.start(*filled, "snakemake", "--cores", "1", *snakefile, "main"),
        parent.start(*filled, "snakemake", "--cores", "1"),
    ]
    for run in runs:
        output = run.communicate()
        assert run.returncode == 0, output
    for project in (elsewhere, parent):
        assert project.digests("results/main/tables") == made.digests("results/main/tables")
    assert state(checkout) == before


def module(made: Project, folder: Path, line: str) -> Project:
    """A workflow of a user that includes this one as a module."""
    parent = user(made, folder)
    text = (
        f'module norm:\n    snakefile: "{made.root}/Snakefile"\n    {line}\nuse rule * from norm\n'
    )
    (parent.root / "Snakefile").write_text(text)
    return parent


def test_a_module_has_the_values_that_its_parent_gives_it(made, tmp_path):
    parent = module(made, tmp_path / "parent", 'config: config["norm"]')

    def planned(norm: str, *, ok: bool = True) -> str:
        values = (f"norm={norm}", "level=2")  # the second belongs to the parent
        return parent.snakemake("-n", "main", "--config", *values, ok=ok)

    alone = "{main: {stack: 1, protocols: {nanogpt: {training: {steps: 500}}}}}"
    assert stats(planned(alone))["main_train"] > stats(planned("{}"))["main_train"]
    assert "level: Input should be a valid number, got {}" in planned("{level: {}}", ok=False)


def test_of_data_the_user_s_are_those_that_may_be_chosen(made, tmp_path):
    elsewhere = user(made, tmp_path / "elsewhere")
    (elsewhere.root / "data/claims").mkdir(parents=True)
    for name in ("claims/script.yaml", "published.csv"):
        (elsewhere.root / "data" / name).write_text((made.root / "data" / name).read_text())
    script = yaml.safe_load((made.root / "data/claims/script.yaml").read_text())
    asked = {
        "title": "A reader's question",
        "checked": "the question",
        "asked": script["softmax_costs_more"],
    }
    (elsewhere.root / "data/claims/asked.yaml").write_text(yaml.safe_dump(asked))
    run = ("-n", "--snakefile", str(made.root / "Snakefile"))
    output = elsewhere.snakemake(*run, "results/paper/manifest.json")
    (files,) = re.findall(r"^ *rule manifest:\n +input: (.*)$", output, re.MULTILINE)
    read = {"data/claims/asked.yaml", "data/claims/script.yaml"}
    read |= {f"{made.root}/data/{name}" for name in ("claims/tutorial.yaml", "published.csv")}
    assert read <= set(files.split(", "))
