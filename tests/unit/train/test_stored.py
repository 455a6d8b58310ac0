"""Trained models from their files: they come back as written, and a damaged file is named."""

import json
from pathlib import Path

import pytest
import torch
from recipes import DATA, recipe
from stored_models import LOST_AT, write
from trainings import trained

from normscope.io import stored
from normscope.io.stored import Damaged
from normscope.train.files import METRICS, write_models
from normscope.train.recipe import Stack
from normscope.train.trained import transformers

SEEDS = [10, 2, 2**40]  # as text, 10 comes before 2


@pytest.fixture
def folder(tmp_path) -> Path:
    """The files of three models, of which the second diverged."""
    return write(tmp_path / "job", recipe(seeds=SEEDS), [2.5, None, 1 / 3])


KINDS = [
    recipe("layernorm", dropout=0.5, seeds=SEEDS),
    recipe("batchnorm", "post", seeds=SEEDS),
    recipe("none", "none", tied_head=False, feedback="fa", linear_bias=True, seeds=SEEDS),
    recipe("rmsnorm", tied_head=False, feedback="dfa", norm_backward="projected", seeds=SEEDS),
    recipe("dyt_attention", "lns", qk_norm="all", init="gpt2_flat", final_norm=False, seeds=SEEDS),
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


def test_metrics_come_back_by_seed(folder, tmp_path):
    """Every digit of a loss, and seeds beyond those of a double."""
    table = stored.metrics(folder)
    assert ["seed", *table.columns] == METRICS
    assert table.index.tolist() == SEEDS
    assert table["val_loss"].tolist() == [2.5, pytest.approx(float("nan"), nan_ok=True), 1 / 3]
    assert table["diverged_at"].isna().tolist() == [True, False, True]
    assert table["diverged_at"][2] == LOST_AT
    table = stored.metrics(write(tmp_path / "lost", recipe(seeds=[1, 2]), [None, None]))
    assert table["diverged_at"].tolist() == [LOST_AT] * 2
    assert table["val_loss"].isna().all()


def load(folder: Path, name: str) -> object:
    return stored.metrics(folder) if name == "metrics.csv" else transformers(folder)


def damaged(folder: Path, name: str) -> str:
    """The reason why a file of a job is damaged."""
    path = folder / name
    with pytest.raises(Damaged) as e:
        load(folder, name)
    start, end = f"{path} is damaged (", f"): remove {path.resolve()} and start again"
    assert str(e.value).startswith(start)
    assert str(e.value).endswith(end)
    return str(e.value)[len(start) : -len(end)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("models.safetensors", content) for content in (b"", b"}{" * 200)),
        *(("config.json", content) for content in (b"{", b"[]")),
        *(("metrics.csv", content) for content in (b"", b"seed,val_loss\n1,2\n")),
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_damaged_file_is_named_with_what_to_remove(folder, tmp_path, name, content, is_linked):
    (folder / name).write_bytes(content)
    if is_linked:
        place = tmp_path / "link"
        place.mkdir()
        for file in folder.iterdir():
            (place / file.name).symlink_to(file)
        damaged(place, name)
    else:
        damaged(folder, name)


@pytest.mark.parametrize("seeds", [SEEDS[:2], [*SEEDS, 1], [1, 2, 3]])
def test_weights_of_other_seeds_are_named(folder, tmp_path, seeds):
    other = write(tmp_path / "other", recipe(seeds=seeds), [1.0] * len(seeds))
    (other / "models.safetensors").replace(folder / "models.safetensors")
    reason = f"it holds seeds {sorted(seeds)}, its config.json {SEEDS}"
    assert damaged(folder, "models.safetensors") == reason


def test_a_config_with_a_missing_or_wrong_value_is_named_with_its_key(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key in [*Stack.model_fields, "vocab_size"]:
        path.write_text(json.dumps({name: v for name, v in config.items() if name != key}))
        assert damaged(folder, "config.json") == f"KeyError('{key}')"
    for key, value in (("placement", "sideways"), ("seeds", [-1])):
        path.write_text(json.dumps(config | {key: value}))
        assert key in damaged(folder, "config.json")
