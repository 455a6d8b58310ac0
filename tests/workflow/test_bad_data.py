"""Data and configuration files that are wrong: one error, before anything is trained on them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from project import ROOT, Project

TEXT = "to be or not to be: that is the question\n" * 100
CHARS = sorted(set(TEXT))
TOKENS = np.array([CHARS.index(c) for c in TEXT])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder of its own, with a directory in nanoGPT's format that is chosen."""
    (tmp_path / "mine").mkdir()
    stoi = {c: i for i, c in enumerate(CHARS)}
    meta = {"vocab_size": len(CHARS), "itos": dict(enumerate(CHARS)), "stoi": stoi}
    (tmp_path / "mine/meta.pkl").write_bytes(pickle.dumps(meta))
    TOKENS[:3690].astype("<u2").tofile(tmp_path / "mine/train.bin")
    TOKENS[3690:].astype("<u2").tofile(tmp_path / "mine/val.bin")
    choose(tmp_path, {"dataset": {"directory": "mine"}})
    return Project(tmp_path)


def choose(folder: Path, choices: dict[str, Any]) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(choices))


def refusal(project: Project, *flags: str) -> str:
    """What is said of it, without a traceback."""
    snakefile = ("--snakefile", str(ROOT / "Snakefile"))
    output = project.snakemake("results/dataset/meta.json", *snakefile, *flags, ok=False)
    assert "Traceback" not in output
    return output


def at_the_start(project: Project) -> str:
    output = refusal(project, "--dry-run")
    assert "Job stats" not in output
    return output


def test_tokens_of_another_type_are_refused_by_the_first_job(project: Project):
    TOKENS[3690:].astype("<u4").tofile(project.root / "mine/val.bin")
    output = refusal(project)
    assert "mine/val.bin: read as uint16, every odd token is 0: is this uint32" in output
    assert not (project.root / "results/dataset/meta.json").exists()


def test_a_corpus_that_is_too_short_is_refused(project: Project):
    """At the start, as the sizes of its files say so: config.yaml has a block_size of 64."""
    TOKENS[:64].astype("<u2").tofile(project.root / "mine/val.bin")
    output = at_the_start(project)
    assert "too short: 3,690 characters for training and 64 for validation" in output
    assert "block_size 64) needs 65 of each" in output


def test_bpe_tokens_are_refused_at_the_start(project: Project):
    (project.root / "mine/meta.pkl").unlink()
    output = at_the_start(project)
    assert "dataset.directory: missing mine/meta.pkl" in output
    assert "only datasets of characters are supported" in output


def test_a_key_that_is_given_twice_is_refused_with_its_file_and_line(project: Project):
    with (project.root / "config.yaml").open("a") as file:
        file.write("stack: 3\nstack: 6\n")
    assert f"{project.root / 'config.yaml'}, line 4: given twice: stack" in at_the_start(project)
