"""``normscope norms`` and ``normscope fold``: from a directory, as a user types them."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrained_models import config_of, random_model, save, shallow_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import normscope
from normscope.cli import main

TOKENS = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(0))
ROTATED: dict[str, str] = dict.fromkeys(("q_norm", "k_norm"), "goes to")
ADDED: dict[str, str] = dict.fromkeys(
    ("post_attention_layernorm", "post_feedforward_layernorm"), "goes to add"
)
# the norms that stay, by their last names, and the reason
STAY: dict[str, dict[str, str]] = {
    "llama": {},
    "qwen3": ROTATED,
    "gemma2": {"norm": "tied", **ADDED},
    "gemma3_text": {"norm": "tied", **ROTATED, **ADDED},
    "gpt2": {"ln_f": "tied"},
    "olmo2": {**ROTATED, **ADDED},
    "phi": {},
    "gpt_neox": {"final_layer_norm": "would need a bias"},
}


def command(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    main([str(word) for word in words])
    return capsys.readouterr().out


def logits(directory: Path) -> Tensor:
    """In float64, as transformers loads a checkpoint; its norms round to float32."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float64)
    return model(TOKENS).logits.detach()


@pytest.mark.parametrize("kind", STAY)
def test_a_folded_checkpoint_has_the_same_logits_in_transformers(kind, tmp_path, capsys):
    source, out = save(shallow_model(kind), tmp_path / "model"), tmp_path / "folded"
    text = command(capsys, "fold", source, out)
    before, after = logits(source), logits(out)
    assert float((after - before).abs().max() / before.abs().max()) < 3e-6
    old, new = (AutoModelForCausalLM.from_pretrained(place) for place in (source, out))
    assert type(new) is type(old)
    assert new.config.to_diff_dict() == old.config.to_diff_dict()
    for name in normscope.norms(old).table["norm"]:
        leaf = name.rpartition(".")[2]
        state, had = (model.get_submodule(name).state_dict() for model in (new, old))
        if reason := STAY[kind].get(leaf):
            assert all(torch.equal(state[key], had[key]) for key in had)
            assert re.search(rf"{leaf}\b.*{reason}", text)
        else:
            assert ((state["weight"] + ("Gemma" in type(old).__name__)) == 1).all()
            assert not state.get("bias", torch.zeros(1)).any()
    tokenizers = (AutoTokenizer.from_pretrained(place) for place in (source, out))
    assert len({str(one("To be, or not to be")["input_ids"]) for one in tokenizers}) == 1
    changes = [float(number) for number in re.findall(r"\d\.\de-\d+", text)]
    assert len(changes) == 2
    assert all(0 < change < 1e-5 for change in changes)


def test_types_stay_and_weights_that_are_not_loaded_are_named(tmp_path, capsys):
    source = save(random_model("llama").to(torch.bfloat16), tmp_path / "model", "1GB")
    weights = source / "model.safetensors"
    head = {"v_head.summary.weight": torch.ones(1, 32)}
    save_file(load_file(weights) | head, weights, {"format": "pt"})
    text = command(capsys, "fold", source, tmp_path / "new/folded")
    assert "v_head.summary.weight: not written" in text
    exact, stored = (float(number) for number in re.findall(r"\d\.\de-\d+", text))
    assert 1e-4 < exact < 3e-2
    assert 1e-4 < stored < 1e-1
    made = load_file(tmp_path / "new/folded/model.safetensors")
    assert {t.dtype for t in made.values()} == {torch.bfloat16}


def test_the_passport_of_a_checkpoint_is_that_of_its_model(tmp_path, capsys):
    model = random_model("gemma2")
    text = command(capsys, "norms", save(model, tmp_path))
    assert text.startswith(str(normscope.norms(model)))
    rows = text.splitlines()
    assert sum("Gemma2RMSNorm" in row and "1 + w" in row for row in rows) == 17


def bert(directory: Path) -> Path:
    AutoModelForMaskedLM.from_config(config_of("bert", is_decoder=False)).save_pretrained(directory)
    return directory


def weightless(directory: Path) -> Path:
    config_of("llama").save_pretrained(directory)
    return directory


def encoder_decoder(directory: Path) -> Path:
    config_of("t5").save_pretrained(directory)
    (directory / "model.safetensors").write_bytes(b"")
    return directory


WRONG: dict[str, tuple[Any, str]] = {
    "a missing directory": (lambda d: d / "nowhere", "nowhere is not a directory"),
    "a name of the hub": (lambda _: "openai-community/gpt2", "hf download"),
    "an empty directory": (lambda d: d, "config.json"),
    "no weights": (weightless, "has no weights"),
    "an encoder": (bert, "give a decoder"),
    "damaged weights": (encoder_decoder, "truncated or damaged"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", ["norms", "fold"])
def test_what_is_no_checkpoint_of_a_decoder_is_an_error_of_one_line(what, name, tmp_path):
    make, words = WRONG[what]
    (tmp_path / "model").mkdir()
    place = make(tmp_path / "model")
    with pytest.raises(normscope.Explained, match=words) as e:
        main([name, str(place), *[str(tmp_path / "out")] * (name == "fold")])
    assert "\n" not in str(e.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_not_overwritten(tmp_path):
    source = save(random_model("gpt2"), tmp_path)
    with pytest.raises(normscope.Explained, match="exists: name a new folder"):
        main(["fold", str(source), str(source)])
