"""``tables``, ``table``, ``models`` and ``load`` on a stored run, intact and damaged."""

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import stored_models
import torch
from processes import ROOT
from recall_recipes import moved, recall_run
from recipes import DATA, recipe

import normscope
from normscope.io.csvfile import write_csv
from normscope.io.stored import Damaged
from normscope.nn.model import Transformer
from normscope.studies.recall.model import RecallModel
from normscope.train.files import write_models
from normscope.train.runtime import CPU
from normscope.train.trainer import Learner

NAME = "main.tiny-rmsnorm-peri-0.01-7"
RECALL = "recall.recall-layernorm-0.01-1337"
JOB = "main/models/tiny-rmsnorm-peri-0.01-7"
FILES = ["config.json", "metrics.csv", "models.safetensors"]
WORDS = pd.DataFrame({"word": ["NA", "none", None], "x": [1.5, None, 3.0]})


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A run with a table, three Transformers, one of them diverged, and a recall model."""
    tmp_path = tmp_path_factory.mktemp("run")
    write_csv(tmp_path / "main/tables/words.csv", WORDS)
    write_csv(tmp_path / "other/tables/words.csv", WORDS)  # not the folder of a study
    stack = recipe("rmsnorm", "peri", seeds=[7, 8, 9])
    stored_models.write(tmp_path / JOB, stack, [2.0, None, 2.5])
    stack = recall_run("layernorm")
    learner = Learner(moved(RecallModel(stack.task, stack.norm)).eval(), 1337, CPU)
    learner.curve = [{"step": 1, "train_loss": 1.0, "val_loss": 1.0}]
    write_models(tmp_path / RECALL.replace(".", "/models/", 1), [learner], stack.model_dump())
    (tmp_path / "main/models/begun-7").mkdir()
    return tmp_path


@pytest.fixture
def run(stored, tmp_path) -> Path:
    """A copy of the stored run, to change."""
    return shutil.copytree(stored, tmp_path / "run")


def transformer() -> Transformer:
    stack = recipe("rmsnorm", "peri")
    return Transformer(stack.model, stack.norm, stack.placement, DATA.vocab_size)


def test_a_table_reads_back_as_written(stored):
    assert normscope.tables(stored) == ["main.words"]
    read = normscope.table("main.words", stored)
    pd.testing.assert_frame_equal(read, WORDS, check_dtype=False)


def test_a_changed_table_an_empty_one_and_a_folder_are_damaged(run):
    path = run / "main/tables/words.csv"
    path.write_text(path.read_text().replace("1.5", "1.6"))
    (run / "main/tables/folder.csv").mkdir()
    (run / "main/tables/empty.csv").touch()
    for name in ("words", "folder", "empty"):
        with pytest.raises(Damaged, match=f"{name}\\.csv"):
            normscope.table(f"main.{name}", run)


def test_each_model_has_a_row(stored):
    table = normscope.models(stored).set_index(["name", "seed"])
    assert list(table.index) == [(NAME, 7), (NAME, 8), (NAME, 9), (RECALL, 1337)]
    assert list(table["arm"]) == [*["rmsnorm"] * 3, "layernorm"]
    assert list(table["placement"][:3]) == ["peri"] * 3
    assert table.loc[(NAME, 9), "val_loss"] == 2.5
    assert list(table["diverged_at"].dropna().items()) == [((NAME, 8), stored_models.LOST_AT)]
    parameters = sum(p.numel() for p in transformer().parameters())
    assert table.loc[(NAME, 7), "parameters"] == parameters


def test_a_loaded_model_computes_what_the_stored_one_did(stored):
    tokens = torch.randint(DATA.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    for seed in (7, 9):
        torch.manual_seed(seed)
        expected = moved(transformer(), seed).eval()
        model = normscope.load(NAME, seed, stored)
        assert not model.training
        assert torch.equal(model(tokens), expected(tokens))
    first = normscope.load(NAME, 7, stored)
    for seed in (None, np.int32(7), normscope.models(str(stored))["seed"][0]):
        assert torch.equal(normscope.load(NAME, seed, str(stored))(tokens), first(tokens))


@pytest.mark.parametrize(
    ("name", "seed", "words"),
    [
        ("main.tiny-rmsnorm-peri-0.01-8", None, r"did you mean main\.tiny-rmsnorm-peri-0\.01-7\?"),
        (NAME, 8, r"seed 8 diverged at step 4.*: 7, 9"),
        (NAME, 3, r"no seed 3; known: 7, 8, 9"),
    ],
)
def test_an_unknown_model_is_an_error(stored, name, seed, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.load(name, seed, stored)


def test_an_unknown_table_or_folder_is_an_error(stored, tmp_path):
    with pytest.raises(normscope.Explained, match=r"main\.word'; did you mean main\.words\?"):
        normscope.table("main.word", stored)
    for look in (normscope.tables, normscope.models):
        for folder in ("none", stored / "main/tables/words.csv"):
            with pytest.raises(normscope.Explained, match="there is no folder"):
                look(folder)
        with pytest.raises(normscope.Explained, match=r"has no t.*: name the folder of a run"):
            look(tmp_path)
    with pytest.raises(normscope.Explained, match=r"has no tables: name the folder of a run"):
        normscope.tables(ROOT)  # its folders have tables of data, but none of a study


@pytest.mark.parametrize("content", [None, b"[]"])
@pytest.mark.parametrize("file", FILES)
def test_a_changed_file_is_an_error_that_names_it(run, file, content):
    path = run / JOB / file
    changed = bytearray(path.read_bytes())
    changed[-2] ^= 1
    path.write_bytes(changed if content is None else content)
    with pytest.raises(Damaged, match=file):
        normscope.load(NAME, 7, run)
    with contextlib.nullcontext() if file == FILES[2] else pytest.raises(Damaged, match=file):
        normscope.models(run)
