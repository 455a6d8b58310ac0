"""Stored models, wrong arguments, and the package as it is installed."""

import contextlib
import inspect
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import stored_models
import torch
import yaml
from pretrained_models import random_model, tokenizer
from processes import ROOT
from recall_recipes import move, recall_run
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
    learner = Learner(move(RecallModel(stack.task, stack.norm)).eval(), 1337, CPU)
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
        expected = move(transformer(), seed).eval()
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


TOKENS = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(0))
X = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
TEXTS = ["To be, or not to be", "a"]
# arguments of the right type, by name
RIGHT: dict[str, Any] = {
    **{"model": random_model("gpt2"), "tokens": TOKENS, "names": None, "first_apart": False},
    "new_biases": True,
    **{"tokenizer": tokenizer(), "prompts": TEXTS, "blocks": None, "final_norm": None},
    **{"norm": "layernorm", "x": X, "budget": "demo", "folder": "", "cores": 1},
    **{"name": "main.chosen", "seed": np.int64(1), "results": Path("nowhere")},
    **{"runs": pd.DataFrame(), "by": "norm", "unit": "seed", "margin": 1, "value": "loss"},
    **{"baseline": None, "text": None, "rate": None},
}
MESSAGES = [{"role": "user", "content": "What is a norm?"}]


PARAMETERS = [
    (function, name)
    for function in normscope.__all__
    if function != "Explained"
    for name in inspect.signature(getattr(normscope, function)).parameters
]


@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_an_argument_of_another_type_is_named(function, name):
    call = getattr(normscope, function)
    others = {n: RIGHT[n] for n in inspect.signature(call).parameters}
    if function == "load":
        others["norm"] = None
    for wrong in (object(), MESSAGES, [3], {"a": "b"}):
        with pytest.raises(normscope.Explained, match=f"^{name} is of type .*: give ") as e:
            call(**others | {name: wrong})
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"norm": type("Local", (normscope.Explained,), {})}, "norm is of type type: give"),
        ({"norm": 3}, "norm is of type int: give str or a subclass of torch"),
        ({"norm": ["dyt", 3]}, "norm is of type list of int, str"),
        ({"norm": torch.nn.LayerNorm(4)}, "norm is of type LayerNorm"),
        ({"norm": []}, "norm is empty"),
        ({"norm": "dyt", "budget": "5 mn"}, "did you mean 5 min?"),
        ({"norm": "dyt", "budget": ["5 min"]}, "budget is of type list"),
        ({"norm": "dyt", "cores": 0}, "cores is 0"),
        ({"norm": "dyt", "folder": 3}, "folder is of type int"),
        ({"norm": "dyt", "folder": __file__}, "test_api_stored.py: File exists"),
    ],
)
def test_wrong_arguments_of_a_card_are_one_line(arguments, reason, tmp_path: Path):
    with pytest.raises(normscope.Explained, match=reason) as error:
        normscope.card(**{"folder": tmp_path, **arguments})
    assert "\n" not in str(error.value)


@contextmanager
def during(change: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    """A setting of torch in the body."""
    change(value)
    try:
        yield
    finally:
        change(before)


SETTINGS: dict[str, Callable[[], AbstractContextManager]] = {
    "bfloat16": partial(during, torch.set_default_dtype, torch.bfloat16, torch.float32),
    "another device": partial(during, torch.set_default_device, "meta", None),
    "inference mode": torch.inference_mode,
    "autocast": partial(torch.autocast, "cpu", torch.bfloat16),
}


def results(folder: Path, setting: AbstractContextManager) -> list[Any]:
    """What the public functions return in a setting: tables, and the tensors of models."""
    model = random_model("gpt2_untied")
    with setting:
        loaded = normscope.load(NAME, results=folder)
        removed = normscope.remove(model, TOKENS)
        folded = normscope.fold(removed)
        default = normscope.fold(model)
        tables = [
            normscope.removable(model, TOKENS),
            normscope.gain(model, tokenizer(), TEXTS),
            normscope.models(folder),
            folded.table,
            default.table,
        ]
        factors = normscope.factors("layernorm", X)
    models = (loaded, removed, folded.model, default.model)
    return [*tables, *(t for m in models for t in m.state_dict().values()), *factors]


@pytest.fixture(scope="module")
def usual(stored) -> list[Any]:
    return results(stored, nullcontext())


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_torch_do_not_change_results(setting, stored, usual):
    for result, expected in zip(results(stored, SETTINGS[setting]()), usual, strict=True):
        if isinstance(result, pd.DataFrame):
            pd.testing.assert_frame_equal(result, expected)
        else:
            torch.testing.assert_close(result, expected, rtol=0, atol=0)
    assert torch.get_default_dtype() == torch.float32


# what a user may write: the tables of the working directory, models that are made here
PROGRAM = """
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

assert set(normscope.norms(model).table["computes"]) == {"LayerNorm"}
assert len(normscope.factors("rmsnorm", torch.ones(2, 8)).gain) == 8
print(normscope.__version__)
"""


def test_the_wheel_serves_away_from_the_checkout(tmp_path):
    wheels, place = tmp_path / "wheels", tmp_path / "place"
    _run(sys.executable, "-m", "pip", "-q", "wheel", ROOT, "--no-deps", "--wheel-dir", wheels)
    (wheel,) = wheels.glob("normscope-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    # -S reads no .pth files, one of which makes the checkout importable
    paths = f"import sys\nsys.path[:0] = {[str(place), sysconfig.get_path('purelib')]}\n"
    done = _run(sys.executable, "-I", "-S", "-c", paths + PROGRAM, cwd=place)
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
