"""The files of weights in a model directory."""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from normscope.errors import Explained

SINGLE = ("model.safetensors", "pytorch_model.bin")  # in transformers' order of preference


def weight_files(directory: Path) -> list[Path]:
    """The files from which transformers reads the weights.

    Raises:
        Explained: there are none, or their index is damaged or names anything other than files in
            its directory.
    """
    for name in SINGLE:
        index = directory / f"{name}.index.json"
        if (directory / name).is_file():
            return [directory / name]
        if index.is_file():
            return _named_in(index)
    raise Explained(f"{directory} has no weights: none of {', '.join(SINGLE)} and their indices")


def _named_in(index: Path) -> list[Path]:
    try:
        names = sorted(map(str, json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Explained(f"{index} is damaged ({e!r}): fetch it again") from e
    paths = [index.parent / name for name in dict.fromkeys(names)]
    for path in paths:
        if path.parent != index.parent or not path.is_file():
            raise Explained(
                f"{index} names {path}, which is not a file in its directory: fetch it again"
            )
    return paths


def stored_types(directory: Path) -> str:
    """The data types of the stored weights, such as ``BF16``; ``pickle`` for pytorch_model.bin.

    Raises:
        Explained: a file is missing, truncated or damaged.
    """
    types: set[str] = set()
    for path in weight_files(directory):
        if path.suffix == ".bin":
            types.add("pickle")
            continue
        try:
            with safe_open(path, "pt") as weights:  # compares the size of the file with its header
                types |= {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
        except SafetensorError as e:
            raise Explained(f"{path} is truncated or damaged ({e}): fetch it again") from e
    return ", ".join(sorted(types))
