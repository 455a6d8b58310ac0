"""The norms of a checkpoint of transformers on disk, and a checkpoint without their gains."""

import re
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoModelForCausalLM

from normscope.api.folds import fold
from normscope.api.passport import norms, reasons, some
from normscope.api.running import evaluating, logits, random_tokens
from normscope.errors import Explained
from normscope.hub.architecture import check_causal
from normscope.hub.loading import load_weights, outline, stored_types, weight_files
from normscope.hub.snapshot import TEXT
from normscope.measure.readers import InFloat64

RANDOM = "sigma and size are those of random tokens: give text to normscope.norms in Python"
EAGER = {"experts_implementation": "eager"}  # torch's kernel for experts is not in float64


def passport(directory: Path) -> str:
    """The passport of the norms of a checkpoint, on random tokens; see ``normscope.norms``.

    Raises:
        Explained: the directory has no causal language model that transformers loads, or its model
            has no norm.
    """
    return f"{norms(_load(directory))}\n\n{RANDOM}"


def fold_checkpoint(source: Path, out: Path) -> str:
    """Write a checkpoint whose norms are folded, in the types of another; say what changed.

    The class stays, so that a norm stays as it is, and is named, if a linear layer would need a
    bias that the class does not have. Text files, such as those of the tokenizer, are copied.

    Raises:
        Explained: the source has no causal language model that transformers loads, or out has files
            already.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise Explained(f"{out} exists: name a new folder")
    model = _load(source, dtype="auto", **EAGER)
    folded = fold(model, new_biases=False)
    table = folded.table
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        part = Path(folder, "made")
        without_gains: Any = folded.model
        without_gains.save_pretrained(part)
        for path in (path for pattern in TEXT for path in source.glob(pattern)):
            if not path.name.endswith(".index.json") and not (part / path.name).exists():
                shutil.copy(path, part)
        tokens = random_tokens(model)
        exact, stored = (_change(source, part, dtype, tokens) for dtype in (torch.float64, "auto"))
        part.rename(out)
    gained = table[table["folded"] & (table["into"].str.len() > 0)]
    lines = [f"{out}: the gains of {len(gained)} of {len(table)} norms are folded."]
    for problem, names in reasons(table[~table["folded"]]).items():
        lines.append(f"{some(names)}: as before, because {problem}")
    if unread := _unread(source):
        lines.append(
            f"{some(unread)}: not written, because {type(model).__name__} does not load it"
        )
    lines.append(
        "The largest change of a logit by the written weights, over the largest logit: "
        f"{exact:.1e} computed in float64, {stored:.1e} in {model.dtype}."
    )
    return "\n".join(lines)


def _load(directory: Path, **options: Any) -> Any:
    """The model of a checkpoint, with options of ``from_pretrained``."""
    if not (directory / "config.json").is_file():
        raise Explained(
            f"{directory} is not a directory with a config.json: give what save_pretrained wrote; "
            "a model of the hub is a directory after `hf download NAME --local-dir DIRECTORY`"
        )
    stored_types(directory)  # checks the files of the weights
    config, empty = outline(directory)
    check_causal(empty)
    return load_weights(directory, config, options)


def _change(source: Path, out: Path, dtype: Any, tokens: Tensor) -> float:
    """The largest change of a logit, over the largest, as transformers loads two checkpoints."""
    before, after = (_logits(directory, dtype, tokens) for directory in (source, out))
    return float((after - before).abs().max() / before.abs().max())


def _logits(directory: Path, dtype: Any, tokens: Tensor) -> Tensor:
    model = AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype, trust_remote_code=False, **EAGER
    )
    with evaluating(model), InFloat64() if dtype == torch.float64 else nullcontext():
        return logits(model, tokens).double()


def _unread(directory: Path) -> list[str]:
    """The weights of a checkpoint that its class does not load."""
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        directory, trust_remote_code=False, output_loading_info=True
    )
    model, report = loaded
    ignored = "|".join(model._keys_to_ignore_on_load_unexpected or ())
    unread = {*report["unexpected_keys"]}
    for path in weight_files(directory):
        if ignored and path.suffix == ".safetensors":
            with safe_open(path, "pt") as weights:
                unread |= {name for name in weights.keys() if re.search(ignored, name)}  # noqa: SIM118
    return sorted(name for name in unread if name.endswith("weight"))  # not masks and frequencies
