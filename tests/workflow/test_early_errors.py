"""Wrong configurations, data and surroundings: one error with a remedy, before any job starts."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from project import ROOT, Project

TEXT = "to be or not to be: that is the question\n" * 100
CHARS = sorted(set(TEXT))
TOKENS = np.array([CHARS.index(c) for c in TEXT])
CONFIG, ARMS = "config.yaml", "src/normscope/nn/arms.py"
WRONG_ROW = '    Row("rmsnorm", "Again", ZS19, _token(gian=True)),\n'
INSTALLED = r"installed are pandas [\d.]+ in place of 0\.[\d.]+: run `make tools`"


def rejected(project: Project, *flags: str) -> str:
    """The output of a dry run that fails before any job starts."""
    output = project.snakemake("--dry-run", *flags, ok=False)
    assert "Traceback" not in output
    assert "Job stats" not in output
    return output


def test_a_locale_of_another_encoding_is_rejected(tmp_path: Path):
    """The Snakemake of the other tests is a fork, which keeps the locale of its parent."""
    ascii = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    snakemake = (sys.executable, "-m", "snakemake", "-n", "--snakefile", ROOT / "Snakefile")
    done = subprocess.run(
        snakemake, cwd=tmp_path, env=os.environ | ascii, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "and normscope in UTF-8: set PYTHONUTF8=1" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["results", "store"])
def test_a_file_in_the_place_of_a_folder_is_named(made: Project, tmp_path: Path, name: str):
    (tmp_path / name).touch()
    flags = ("--directory", str(tmp_path), "--configfile", str(made.root / CONFIG))
    assert f"{name} is a file or a dangling link" in rejected(made, *flags)


def test_a_wrong_row_of_the_arms_is_rejected(made: Project):
    with made.edited(ARMS, '    Row("none",', f'{WRONG_ROW}    Row("none",'):
        assert "'rmsnorm': gian: unknown key; did you mean gain?" in rejected(made)


def test_choices_on_the_command_line_are_checked_like_a_file(made: Project):
    output = rejected(made, "--config", "depth={training: {stesp: 30}}")
    assert "training.stesp: unknown key; did you mean steps?" in output


def test_a_card_needs_a_norm(made: Project):
    assert "name a norm: make card NORM=" in made.snakemake("card", "-n", ok=False)
    choices = 'card={norm: ["missing.py:Norm"], budget: demo}'
    output = rejected(made, "card", "--config", choices)
    assert "arms.norm: there is no file missing.py" in output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"training:\n  steps: 60\n model: 3\n", "my.yaml, line 3: "),
        (None, "my.yaml: No such file or directory; all words after --configfile are read as"),
    ],
)
def test_a_configfile_that_cannot_be_read_is_named(
    made: Project, tmp_path: Path, content: bytes | None, said: str
):
    path = tmp_path / "my.yaml"
    if content is not None:
        path.write_bytes(content)
    line = rejected(made, "--configfile", "config/tiny.yaml", str(path)).splitlines()[-1]
    assert line.startswith(f"error: {tmp_path}/{said}")


def test_a_number_is_decimal_wherever_it_is_given(made: Project, tmp_path: Path):
    """In YAML 1.1, 0060 is 48, and the models would be trained again."""
    path = tmp_path / "my.yaml"
    path.write_text("main: {protocols: {nanogpt: {training: {steps: 0060}}}}\n")
    with made.edited(CONFIG, "  steps: 60", "  steps: 0060"):
        assert made.planned("--configfile", str(path)) == {}


def test_other_packages_than_the_pins_are_rejected(made: Project):
    """Results are named after the pins."""
    with made.edited("constraints.txt", "\npandas==", "\npandas==0."):
        output = made.snakemake("results/main/tables/runs.csv", ok=False)
    assert re.search(INSTALLED, output)
    assert "Traceback" not in output


def test_a_job_outside_the_configuration_is_rejected(made: Project):
    job = "results/main/models/nanogpt-layernorm-pre-0.001-77/metrics.csv"
    output = made.snakemake(job, ok=False)
    assert "nanogpt-layernorm-pre-0.001-77 is not in the configuration" in output
    assert "nanogpt-layernorm-pre-0.001-1" in output


@pytest.fixture
def elsewhere(tmp_path: Path) -> Project:
    """A folder with a configuration that chooses a directory in nanoGPT's format."""
    mine = tmp_path / "mine"
    mine.mkdir()
    stoi = {c: i for i, c in enumerate(CHARS)}
    meta = {"vocab_size": len(CHARS), "itos": dict(enumerate(CHARS)), "stoi": stoi}
    (mine / "meta.pkl").write_bytes(pickle.dumps(meta))
    TOKENS[:3690].astype("<u2").tofile(mine / "train.bin")
    TOKENS[3690:].astype("<u2").tofile(mine / "val.bin")
    (tmp_path / CONFIG).write_text(yaml.safe_dump({"dataset": {"directory": "mine"}}))
    return Project(tmp_path)


def test_a_wrong_dataset_of_the_user_is_rejected(elsewhere: Project):
    TOKENS[:64].astype("<u2").tofile(elsewhere.root / "mine/val.bin")
    snakefile = ("--snakefile", str(ROOT / "Snakefile"))
    output = rejected(elsewhere, "results/dataset/meta.json", *snakefile)
    assert "3,690 characters for training and 64 for validation" in output


def test_a_file_that_is_missing_is_named_before_any_job(elsewhere: Project):
    source = {"kind": "path", "path": "~/absent"}
    choices = {"dataset": {"sha256": "0" * 64, "sources": [source]}}
    (elsewhere.root / CONFIG).write_text(yaml.safe_dump(choices))
    said = r"no source has the corpus .*\n  1\. path /.*/absent: FileNotFoundError"
    assert re.search(said, rejected(elsewhere, "--snakefile", str(ROOT / "Snakefile")))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_missing_is_named_before_any_job(made: Project):
    with made.edited(CONFIG, "device: cpu", "device: cuda"):
        output = made.snakemake("models", ok=False)
    assert "device: cuda, but torch finds no GPU: nothing has run" in output
