"""The public functions work from an installed wheel, away from the checkout."""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import yaml
from processes import ROOT

import normscope

# what a user may write: the tables of the working directory, models that are made here
PROGRAM = """
import pandas as pd
import torch
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import normscope

assert Path(normscope.__file__).is_relative_to(Path.cwd()), normscope.__file__
Path("results/main/tables").mkdir(parents=True)
Path("results/main/tables/chosen.csv").write_text("arm,val_loss\\nlayernorm,1.5\\n")
assert normscope.table("main.chosen")["val_loss"].tolist() == [1.5]

letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(letters, [])))
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=len(letters)))
gains = normscope.gain(model, tokenizer, ["once"])
assert set(gains["site"]) == {"embedding", "block_0", "block_1", "final_norm"}

with normscope.watch(model) as norms:
    tokens = torch.arange(9)[None]
    model(tokens, labels=tokens).loss.backward()
assert len(norms.table()) == 5
assert len(normscope.factors("rmsnorm", torch.ones(2, 8)).gain) == 8
print(normscope.__version__)
"""


def test_the_wheel_serves_away_from_the_checkout(tmp_path):
    source, place = tmp_path / "source", tmp_path / "place"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "-q"]
    _run(*pip, "wheel", source, "--no-deps", "--wheel-dir", tmp_path)
    (wheel,) = tmp_path.glob("normscope-*.whl")
    venv.create(place / "venv", with_pip=False)
    python = place / "venv/bin/python"
    _run(*pip, "--python", python, "install", "--no-deps", wheel)
    (site,) = place.glob("venv/lib/python*/site-packages")
    # its packages, without what makes the checkout importable: .pth files there are not read
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    done = _run(python, "-I", "-c", PROGRAM, cwd=place)
    assert done.split()[-1] == normscope.__version__


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    """What it prints; where it fails, that and its errors."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_one_and_the_changelog_begins_with_it():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == normscope.__version__
    latest = re.search(r"^(?:## \[)?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert latest is not None
    assert latest[1] == normscope.__version__
