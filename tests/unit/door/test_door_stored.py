"""Tables and trained models of a folder, by their names."""

import hashlib
import shutil
from pathlib import Path

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

WORDS = pd.DataFrame({"word": ["NA", "none", None], "x": [1.5, None, 3.0]})


@pytest.fixture
def run(tmp_path) -> Path:
    """A run with a table, three Transformers of which one diverged, and a model of recall."""
    write_csv(tmp_path / "main/tables/words.csv", WORDS)
    stack = recipe("rmsnorm", "peri", seeds=[7, 8, 9])
    stored_models.write(tmp_path / "main/models/tiny-rmsnorm-peri-0.01-7", stack, [2.0, None, 2.5])
    stack = recall_run("layernorm")
    learner = Learner(moved(RecallModel(stack.task, stack.norm)).eval(), 1337, CPU)
    learner.curve = [{"step": 1, "train_loss": 1.0, "val_loss": 1.0}]
    job = tmp_path / f"recall/models/recall-layernorm-{stack.learning_rate}-1337"
    write_models(job, [learner], stack.model_dump())
    (tmp_path / "main/models/begun-7").mkdir()
    return tmp_path


def test_a_table_is_what_was_written(run):
    write_csv(run / "other/tables/words.csv", WORDS)  # of no study
    assert normscope.tables(run) == ["main.words"]
    pd.testing.assert_frame_equal(normscope.table("main.words", run), WORDS, check_dtype=False)


def test_the_tables_of_the_evidence_are_those_of_its_files():
    kept = ROOT / "evidence"
    names = normscope.tables(kept)
    assert {f"{p.parent.name}.{p.stem}" for p in kept.glob("*/*.csv")} == set(names)
    chosen = normscope.table("main.chosen", kept)
    assert len(chosen) == (kept / "main/chosen.csv").read_text().count("\n") - 1


def test_a_table_that_was_changed_or_is_unknown_is_an_error(run, tmp_path):
    with pytest.raises(normscope.Explained, match=r"main\.word'; did you mean main\.words\?"):
        normscope.table("main.word", run)
    path = run / "main/tables/words.csv"
    path.write_text(path.read_text().replace("1.5", "1.6"))
    with pytest.raises(Damaged, match=r"words\.csv"):
        normscope.table("main.words", run)
    (tmp_path / "empty").mkdir()
    for look in (normscope.tables, normscope.models):
        with pytest.raises(normscope.Explained, match="empty has no"):
            look(tmp_path / "empty")
    with pytest.raises(normscope.Explained, match="has no tables: name the folder of a run"):
        normscope.tables(ROOT)  # whose folders have tables of data, and none of studies


def test_models_are_listed_a_row_each(run):
    table = normscope.models(run).set_index(["name", "seed"])
    tiny, recall = "main.tiny-rmsnorm-peri-0.01-7", "recall.recall-layernorm-0.01-1337"
    assert list(table.index) == [(tiny, 7), (tiny, 8), (tiny, 9), (recall, 1337)]
    assert list(table["arm"]) == [*["rmsnorm"] * 3, "layernorm"]
    assert list(table["placement"][:3]) == ["peri"] * 3
    assert table.loc[(tiny, 9), "val_loss"] == 2.5
    assert list(table["diverged_at"].dropna().items()) == [((tiny, 8), stored_models.LOST_AT)]
    expected = Transformer(*_parts("rmsnorm", "peri"))
    assert table.loc[(tiny, 7), "parameters"] == sum(p.numel() for p in expected.parameters())


def _parts(arm, placement):
    stack = recipe(arm, placement)
    return stack.model, stack.norm, stack.placement, DATA.vocab_size


def test_a_model_computes_as_the_one_that_was_stored(run):
    tokens = torch.randint(DATA.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    for seed in (7, 9):
        torch.manual_seed(seed)
        expected = moved(Transformer(*_parts("rmsnorm", "peri")), seed).eval()
        model = normscope.load("main.tiny-rmsnorm-peri-0.01-7", seed, run)
        assert not model.training
        assert torch.equal(model(tokens), expected(tokens))
    named = normscope.load("main.tiny-rmsnorm-peri-0.01-7", results=run)
    first = normscope.load("main.tiny-rmsnorm-peri-0.01-7", 7, run)
    assert torch.equal(named(tokens), first(tokens))


def test_a_model_of_recall_is_one(run):
    model = normscope.load("recall.recall-layernorm-0.01-1337", results=run)
    task = recall_run("layernorm").task
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, task.classes)


@pytest.mark.parametrize(
    ("name", "seed", "words"),
    [
        ("main.tiny-rmsnorm-peri-0.01-8", None, r"did you mean main\.tiny-rmsnorm-peri-0\.01-7\?"),
        ("main.tiny-rmsnorm-peri-0.01-7", 8, r"seed 8 diverged at step 4.*: 7, 9"),
        ("main.tiny-rmsnorm-peri-0.01-7", 3, r"no seed 3; known: 7, 8, 9"),
    ],
)
def test_a_model_that_is_not_to_be_had_is_an_error(run, name, seed, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.load(name, seed, run)


@pytest.mark.parametrize("file", ["models.safetensors", "config.json"])
def test_a_damaged_file_is_an_error_that_names_it(run, file):
    job = run / "main/models/tiny-rmsnorm-peri-0.01-7"
    content = bytearray((job / file).read_bytes())
    content[-2] ^= 1
    (job / file).write_bytes(content)
    with pytest.raises(Damaged, match=file):
        normscope.load("main.tiny-rmsnorm-peri-0.01-7", results=run)


def test_files_without_sums_are_neither_listed_nor_loaded(run):
    job = run / "main/models/tiny-rmsnorm-peri-0.01-7"
    (job / "SHA256SUMS").unlink()
    for look in (
        lambda: normscope.models(run),
        lambda: normscope.load("main.tiny-rmsnorm-peri-0.01-7", results=run),
    ):
        with pytest.raises(Damaged, match=r"SHA256SUMS is missing.*: run the workflow again"):
            look()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("metrics.csv", "2.5", "1.5"), ("config.json", '"center": false', '"center": true')],
)
def test_models_are_not_listed_from_a_file_that_was_changed(run, file, old, new):
    path = run / "main/models/tiny-rmsnorm-peri-0.01-7" / file
    changed = path.read_text().replace(old, new)
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(Damaged, match=file):
        normscope.models(run)


def test_a_config_of_other_models_is_an_error_that_names_it(run):
    job, other = (run / "main/models" / n for n in ("tiny-rmsnorm-peri-0.01-7", "other-7"))
    stored_models.write(other, recipe("layernorm", "post", seeds=[7, 8, 9]), [2.0, 2.0, 2.0])
    shutil.copy(other / "config.json", job)
    sums = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in job.iterdir())
    (job / "SHA256SUMS").write_text("".join(sums))
    with pytest.raises(Damaged, match=r"models\.safetensors"):
        normscope.load("main.tiny-rmsnorm-peri-0.01-7", results=run)
