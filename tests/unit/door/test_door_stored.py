"""``tables``, ``table``, ``models`` and ``load`` on a stored run, intact and damaged."""

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import stored_models
import torch
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from properties import examples
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
JOB = "main/models/tiny-rmsnorm-peri-0.01-7"
WORDS = pd.DataFrame({"word": ["NA", "none", None], "x": [1.5, None, 3.0]})


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A run with a table, three Transformers, one of them diverged, and a recall model."""
    tmp_path = tmp_path_factory.mktemp("run")
    write_csv(tmp_path / "main/tables/words.csv", WORDS)
    stack = recipe("rmsnorm", "peri", seeds=[7, 8, 9])
    stored_models.write(tmp_path / JOB, stack, [2.0, None, 2.5])
    stack = recall_run("layernorm")
    learner = Learner(moved(RecallModel(stack.task, stack.norm)).eval(), 1337, CPU)
    learner.curve = [{"step": 1, "train_loss": 1.0, "val_loss": 1.0}]
    job = tmp_path / f"recall/models/recall-layernorm-{stack.learning_rate}-1337"
    write_models(job, [learner], stack.model_dump())
    (tmp_path / "main/models/begun-7").mkdir()
    return tmp_path


@pytest.fixture
def run(stored, tmp_path) -> Path:
    """A copy of the stored run, to change."""
    shutil.copytree(stored, tmp_path / "run")
    return tmp_path / "run"


def test_a_table_reads_back_as_written(run):
    write_csv(run / "other/tables/words.csv", WORDS)  # not the folder of a study
    assert normscope.tables(run) == ["main.words"]
    pd.testing.assert_frame_equal(normscope.table("main.words", run), WORDS, check_dtype=False)


def test_the_tables_of_the_evidence_are_those_of_its_files():
    kept = ROOT / "evidence"
    names = normscope.tables(kept)
    assert {f"{p.parent.name}.{p.stem}" for p in kept.glob("*/*.csv")} == set(names)
    chosen = normscope.table("main.chosen", kept)
    assert len(chosen) == (kept / "main/chosen.csv").read_text().count("\n") - 1


def test_a_changed_table_and_an_empty_folder_are_errors(run, tmp_path):
    path = run / "main/tables/words.csv"
    path.write_text(path.read_text().replace("1.5", "1.6"))
    with pytest.raises(Damaged, match=r"words\.csv"):
        normscope.table("main.words", run)
    (tmp_path / "empty").mkdir()
    for look in (normscope.tables, normscope.models):
        with pytest.raises(normscope.Explained, match="empty has no"):
            look(tmp_path / "empty")
    with pytest.raises(normscope.Explained, match="has no tables: name the folder of a run"):
        normscope.tables(ROOT)  # its folders have tables of data, but none of a study


def test_each_model_has_a_row(stored):
    table = normscope.models(stored).set_index(["name", "seed"])
    tiny, recall = NAME, "recall.recall-layernorm-0.01-1337"
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


def test_a_loaded_model_computes_what_the_stored_one_did(stored):
    tokens = torch.randint(DATA.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    for seed in (7, 9):
        torch.manual_seed(seed)
        expected = moved(Transformer(*_parts("rmsnorm", "peri")), seed).eval()
        model = normscope.load(NAME, seed, stored)
        assert not model.training
        assert torch.equal(model(tokens), expected(tokens))
    first = normscope.load(NAME, 7, stored)
    for seed in (None, np.int32(7), normscope.models(str(stored))["seed"][0]):
        assert torch.equal(normscope.load(NAME, seed, str(stored))(tokens), first(tokens))


def test_a_recall_model_classifies_sequences(stored):
    model = normscope.load("recall.recall-layernorm-0.01-1337", results=stored)
    task = recall_run("layernorm").task
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, task.classes)


@pytest.mark.parametrize(
    ("name", "seed", "words"),
    [
        ("main.tiny-rmsnorm-peri-0.01-8", None, r"did you mean main\.tiny-rmsnorm-peri-0\.01-7\?"),
        (NAME, 8, r"seed 8 diverged at step 4.*: 7, 9"),
        (NAME, 3, r"no seed 3; known: 7, 8, 9"),
        (NAME, 10**30, "has no seed"),
        (NAME, "7", "seed is of type str"),
        (NAME, 7.0, "seed is of type float"),
        (NAME, True, "seed is of type bool"),
        (None, 7, "name is of type NoneType"),
        ("a\0b", 7, "no trained model"),
    ],
)
def test_an_unknown_model_is_an_error(stored, name, seed, words):
    with pytest.raises(normscope.Explained, match=words) as error:
        normscope.load(name, seed, stored)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [("main.word", r"main\.word'; did you mean main\.words\?"), (7, "name is of type int")],
)
def test_an_unknown_table_is_an_error(stored, name, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.table(name, stored)


@pytest.mark.parametrize("folder", [None, 7, b"results", [1], "", "none", "a\0b", "a" * 5000])
def test_a_folder_that_cannot_be_read_is_an_error_that_names_the_argument(folder):
    for call in (
        lambda: normscope.models(folder),
        lambda: normscope.tables(folder),
        lambda: normscope.load(NAME, 7, folder),
        lambda: normscope.table("main.words", folder),
    ):
        with pytest.raises(normscope.Explained, match=r"results|has no t") as error:
            call()
        assert "\n" not in str(error.value)


def test_a_file_and_a_folder_inside_a_run_are_not_runs(stored):
    with pytest.raises(normscope.Explained, match="there is no folder"):
        normscope.models(stored / "main/tables/words.csv")
    with pytest.raises(normscope.Explained, match="has no trained models"):
        normscope.models(stored / "main")


def reseal(job: Path) -> None:
    """Write sums that fit, as if the damage were older than they are."""
    kept = [f for f in job.iterdir() if f.name != "SHA256SUMS" and f.is_file()]
    sums = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in kept)
    (job / "SHA256SUMS").write_text("".join(sums))


def assert_damaged(run: Path, match: str, *, listed: bool = False) -> None:
    """Check that the run's models are not loaded, and unless ``listed`` not listed either."""
    with pytest.raises(Damaged, match=match):
        normscope.load(NAME, 7, run)
    if not listed:
        with pytest.raises(Damaged, match=match):
            normscope.models(run)


@pytest.mark.parametrize("file", ["config.json", "metrics.csv", "models.safetensors"])
@given(content=st.one_of(st.binary(max_size=40), st.sampled_from([b"[]", b'"norm"', b"{}", b"1"])))
@examples(15)
def test_a_file_with_any_content_is_an_error_that_names_it(file, content, tmp_path_factory, stored):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(stored, folder)
    (folder / JOB / file).write_bytes(content)
    listed = file == "models.safetensors"
    assert_damaged(folder, file.replace(".", r"\."), listed=listed)
    reseal(folder / JOB)
    assert_damaged(folder, file.replace(".", r"\."), listed=listed)


@pytest.mark.parametrize("file", ["config.json", "metrics.csv", "models.safetensors"])
def test_one_changed_byte_is_an_error_that_names_the_file(file, run):
    content = bytearray((run / JOB / file).read_bytes())
    content[-2] ^= 1
    (run / JOB / file).write_bytes(content)
    assert_damaged(run, file.replace(".", r"\."), listed=file == "models.safetensors")


def test_files_without_sums_are_neither_listed_nor_loaded(run):
    (run / JOB / "SHA256SUMS").unlink()
    assert_damaged(run, r"SHA256SUMS is missing.*: run the workflow again")


def test_the_config_of_other_models_is_an_error_that_names_the_weights(run):
    other = run / "main/models/other-7"
    stored_models.write(other, recipe("layernorm", "post", seeds=[7, 8, 9]), [2.0, 2.0, 2.0])
    shutil.copy(other / "config.json", run / JOB)
    reseal(run / JOB)
    assert_damaged(run, r"models\.safetensors", listed=True)


@pytest.mark.parametrize("change", ["no_parameters", "no_rows", "a_seed_twice"])
def test_metrics_without_one_row_per_model_are_damaged(run, change):
    table = pd.read_csv(run / JOB / "metrics.csv")
    changes: dict[str, Any] = {
        "no_parameters": table.drop(columns="parameters"),
        "no_rows": table[:0],
        "a_seed_twice": pd.concat([table, table]),
    }
    changes[change].to_csv(run / JOB / "metrics.csv", index=False)
    reseal(run / JOB)
    assert_damaged(run, r"metrics\.csv")


@given(content=st.binary(max_size=40))
@examples(25)
def test_a_table_with_any_content_is_a_table_or_an_error(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "main/tables/words.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with contextlib.suppress(Damaged):
        assert isinstance(normscope.table("main.words", path.parents[2]), pd.DataFrame)


def test_an_empty_file_and_a_folder_are_damaged_tables(run):
    (run / "main/tables/folder.csv").mkdir()
    (run / "main/tables/empty.csv").touch()
    for name in ("folder", "empty"):
        with pytest.raises(Damaged, match=f"{name}\\.csv"):
            normscope.table(f"main.{name}", run)
