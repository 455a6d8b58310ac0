"""A trained model from its files: what was written comes back, and what is damaged is named."""

import json
from pathlib import Path

import pytest
import torch
from recall_recipes import moved
from recipes import DATA, recipe

from normscope.io.stored import Damaged, read
from normscope.nn.model import Transformer
from normscope.train.outputs import write_run
from normscope.train.recipe import Run
from normscope.train.trained import transformer


def write(place: Path, run: Run) -> Transformer:
    """A run's files, of a model that is away from its start."""
    torch.manual_seed(run.seed)
    model = Transformer(run.model, run.norm, run.placement, DATA.vocab_size)
    moved(model)
    for name, t in model.state_dict().items():
        if "running" in name:
            t.uniform_(0.5, 1.5)
    config = run.model_dump() | {"vocab_size": DATA.vocab_size, "threads": 1}
    metrics = {"val_loss": 1.5, "diverged_at": None}
    write_run(place, model, config=config, columns=["step"], curve=[], metrics=metrics)
    return model


@pytest.fixture
def stored(tmp_path) -> Path:
    write(tmp_path / "run", recipe())
    return tmp_path / "run" / "model.safetensors"


KINDS = [
    recipe("layernorm", dropout=0.5),
    recipe("batchnorm", "post", seed=2**40),
    recipe("scalenorm_affine", "peri", attention="sigmoid", causal=False),
    recipe("none", "none", tied_head=False, feedback="fa", linear_bias=True),
    recipe("rmsnorm", tied_head=False, feedback="dfa", norm_backward="projected"),
]


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.placement + run.model.feedback)
def test_a_model_and_its_run_come_back(tmp_path, run):
    written = write(tmp_path, run)
    found, model = transformer(tmp_path / "model.safetensors")
    assert found == run
    assert not model.training
    state = model.state_dict()
    assert list(state) == list(written.state_dict())
    assert all(torch.equal(t, state[name]) for name, t in written.state_dict().items())
    tokens = torch.arange(16).view(2, 8) % DATA.vocab_size
    assert torch.equal(model(tokens), written.eval()(tokens))


def damaged(weights: Path) -> str:
    with pytest.raises(Damaged) as e:
        transformer(weights)
    return str(e.value)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "header"])
def test_damaged_weights_are_named_with_what_to_remove(stored, damage):
    raw = stored.read_bytes()
    contents = {"cut": raw[:-5], "empty": b"", "noise": raw[::-1], "header": raw[:20]}
    stored.write_bytes(contents[damage])
    message = damaged(stored)
    assert message.startswith(f"{stored} is damaged (it does not hold the model of its config.json")
    assert message.endswith(f": remove {stored} and start again")


def test_what_is_to_be_removed_is_the_stored_file_behind_a_link(stored, tmp_path):
    link = tmp_path / "link"
    link.mkdir()
    (link / "config.json").symlink_to(stored.with_name("config.json"))
    (link / "model.safetensors").symlink_to(stored)
    stored.write_bytes(b"")
    message = damaged(link / "model.safetensors")
    assert message.startswith(f"{link / 'model.safetensors'} is damaged (")
    assert message.endswith(f": remove {stored.resolve()} and start again")


@pytest.mark.parametrize("key", [*Run.model_fields, "vocab_size"])
def test_a_config_without_a_key_is_named_with_the_key(stored, key):
    path = stored.with_name("config.json")
    config = json.loads(path.read_text())
    del config[key]
    path.write_text(json.dumps(config))
    message = f"{path} is damaged (KeyError('{key}')): remove {path} and start again"
    assert damaged(stored) == message


@pytest.mark.parametrize("wrong", [{"placement": "sideways"}, {"vocab_size": "x"}, {"seed": -1}])
def test_a_config_with_a_wrong_value_is_named_with_the_key(stored, wrong):
    config = stored.with_name("config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | wrong))
    with pytest.raises(Damaged, match=rf"config.json is damaged(.|\n)*{next(iter(wrong))}"):
        transformer(stored)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"{'norm': 1}"])
def test_a_config_that_is_no_json_is_named(stored, content):
    path = stored.with_name("config.json")
    path.write_bytes(content)
    message = damaged(stored)
    assert message.startswith(f"{path} is damaged (")
    assert message.endswith(f"): remove {path} and start again")


@pytest.mark.parametrize("content", ["[]", "null", "3", '"norm"'])
def test_json_that_is_no_object_is_damaged(tmp_path, content):
    path = tmp_path / "metrics.json"
    path.write_text(content)
    with pytest.raises(Damaged, match=r"metrics\.json is damaged"):
        read(path, "diverged_at")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_an_error_of_the_system_that_names_it(stored, name):
    stored.with_name(name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        transformer(stored)
