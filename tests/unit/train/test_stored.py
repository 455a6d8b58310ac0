"""Trained models from their files: what was written comes back, and what is damaged is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from recipes import DATA, recipe
from stored_models import LOST_AT, write
from trainings import trained

from normscope.io import stored
from normscope.io.stored import Damaged, read
from normscope.train.files import METRICS, write_models
from normscope.train.recipe import Stack
from normscope.train.trained import transformers

SEEDS = [10, 2, 2**40]  # as text, 10 comes before 2


@pytest.fixture
def folder(tmp_path) -> Path:
    """A job's, of three models, the second diverged."""
    return write(tmp_path / "job", recipe(seeds=SEEDS), [2.5, None, 1 / 3])


KINDS = [
    recipe("layernorm", dropout=0.5, seeds=SEEDS),
    recipe("batchnorm", "post", seeds=SEEDS),
    recipe("scalenorm_affine", "peri", attention="sigmoid", causal=False, seeds=SEEDS),
    recipe("none", "none", tied_head=False, feedback="fa", linear_bias=True, seeds=SEEDS),
    recipe("rmsnorm", tied_head=False, feedback="dfa", norm_backward="projected", seeds=SEEDS),
]


@pytest.mark.parametrize("stack", KINDS, ids=lambda stack: stack.placement + stack.model.feedback)
def test_trained_models_and_their_recipe_come_back(tmp_path, stack):
    """By seed, in the order of numbers, each as it was and in evaluation mode."""
    trainer = trained(stack)
    config = stack.model_dump() | {"vocab_size": DATA.vocab_size, "threads": 1}
    write_models(tmp_path, trainer.learners, config)
    restored, models = transformers(tmp_path)
    assert restored == stack
    assert list(models) == sorted(SEEDS)
    tokens = torch.arange(16).view(2, 8) % DATA.vocab_size
    for learner in trainer.learners:
        model = models[learner.seed]
        assert not model.training
        tensors = learner.model.state_dict()
        assert list(model.state_dict()) == list(tensors)
        assert all(torch.equal(t, tensors[name]) for name, t in model.state_dict().items())
        assert torch.equal(model(tokens), learner.model.eval()(tokens))


def test_metrics_come_back_by_seed(folder):
    table = stored.metrics(folder)
    assert ["seed", *table.columns] == METRICS
    assert table.index.tolist() == SEEDS
    assert table["val_loss"].tolist() == [2.5, pytest.approx(float("nan"), nan_ok=True), 1 / 3]
    assert table["diverged_at"].isna().tolist() == [True, False, True]
    assert table["diverged_at"][2] == LOST_AT


def test_metrics_of_models_that_all_diverged_come_back(tmp_path):
    table = stored.metrics(write(tmp_path, recipe(seeds=[1, 2]), [None, None]))
    assert table["diverged_at"].tolist() == [LOST_AT] * 2
    assert table["val_loss"].isna().all()


def damaged(load: Callable[[Path], object], folder: Path) -> str:
    with pytest.raises(Damaged) as e:
        load(folder)
    return str(e.value)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "header"])
def test_damaged_weights_are_named_with_what_to_remove(folder, damage):
    path = folder / "models.safetensors"
    raw = path.read_bytes()
    contents = {"cut": raw[:-5], "empty": b"", "noise": raw[::-1], "header": raw[:20]}
    path.write_bytes(contents[damage])
    message = damaged(transformers, folder)
    assert message.startswith(f"{path} is damaged (it does not hold the models of its config.json")
    assert message.endswith(f": remove {path} and start again")


@pytest.mark.parametrize("seeds", [SEEDS[:2], [*SEEDS, 1], [1, 2, 3]])
def test_weights_of_other_seeds_are_named(folder, tmp_path, seeds):
    other = write(tmp_path / "other", recipe(seeds=seeds), [1.0] * len(seeds))
    path = (other / "models.safetensors").replace(folder / "models.safetensors")
    message = damaged(transformers, folder)
    held = f"it holds seeds {sorted(seeds)}, its config.json {SEEDS}"
    assert message == f"{path} is damaged ({held}): remove {path} and start again"


def test_weights_of_another_shape_are_named(folder, tmp_path):
    other = write(tmp_path / "other", recipe(n_embd=16, seeds=SEEDS), [1.0] * 3)
    (other / "models.safetensors").replace(folder / "models.safetensors")
    assert "size mismatch" in damaged(transformers, folder)


def test_what_is_to_be_removed_is_the_stored_file_behind_a_link(folder, tmp_path):
    link = tmp_path / "link"
    link.mkdir()
    for name in ("config.json", "models.safetensors"):
        (link / name).symlink_to(folder / name)
    weights = folder / "models.safetensors"
    weights.write_bytes(b"")
    message = damaged(transformers, link)
    assert message.startswith(f"{link / 'models.safetensors'} is damaged (")
    assert message.endswith(f": remove {weights} and start again")


@pytest.mark.parametrize("key", [*Stack.model_fields, "vocab_size"])
def test_a_config_without_a_key_is_named_with_the_key(folder, key):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config[key]
    path.write_text(json.dumps(config))
    message = f"{path} is damaged (KeyError('{key}')): remove {path} and start again"
    assert damaged(transformers, folder) == message


@pytest.mark.parametrize("wrong", [{"placement": "sideways"}, {"vocab_size": "x"}, {"seeds": [-1]}])
def test_a_config_with_a_wrong_value_is_named_with_the_key(folder, wrong):
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | wrong))
    with pytest.raises(Damaged, match=rf"config.json is damaged(.|\n)*{next(iter(wrong))}"):
        transformers(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"{'norm': 1}"])
def test_a_config_that_is_no_json_is_named(folder, content):
    path = folder / "config.json"
    path.write_bytes(content)
    message = damaged(transformers, folder)
    assert message.startswith(f"{path} is damaged (")
    assert message.endswith(f"): remove {path} and start again")


@pytest.mark.parametrize("content", ["[]", "null", "3", '"norm"'])
def test_json_that_is_no_object_is_damaged(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(Damaged, match=r"config\.json is damaged"):
        read(path, "norm")


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"seed,val_loss\n1,2\n", b"seed,val_loss,diverged_at\nx,1,\n"]
)
def test_metrics_that_are_no_such_table_are_named(folder, content):
    path = folder / "metrics.csv"
    path.write_bytes(content)
    message = damaged(stored.metrics, folder)
    assert message.startswith(f"{path} is damaged (")
    assert message.endswith(f"): remove {path} and start again")


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("config.json", transformers),
        ("models.safetensors", transformers),
        ("metrics.csv", stored.metrics),
    ],
)
def test_a_missing_file_is_an_error_of_the_system_that_names_it(folder, name, load):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load(folder)


def test_numbers_of_metrics_survive_the_table(folder):
    """Every digit of a float, and seeds beyond those of a double."""
    raw = pd.read_csv(folder / "metrics.csv", dtype=str)
    assert raw["seed"].tolist() == [str(seed) for seed in SEEDS]
    assert float(raw["val_loss"][2]) == 1 / 3
