"""The safetensors files of a model directory."""

import json
from collections.abc import Iterable
from pathlib import Path

from safetensors import SafetensorError, safe_open

from normscope.errors import Explained
from normscope.hub.snapshot import INDEX, SINGLE


class BrokenWeights(Explained):
    """A file of weights is missing or truncated, or belongs to another model."""


def named_in(index: Path) -> list[Path]:
    """The files that an index of shards names, all in the directory of the index.

    Raises:
        BrokenWeights: the index is damaged, or names a path outside its directory.
    """
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise BrokenWeights(f"{index} is damaged ({e!r}): fetch it again") from e
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise BrokenWeights(f"{index} names {name!r}, which is not a file in its directory")
    paths = [index.parent / name for name in names]
    if missing := [path for path in paths if not path.is_file()]:
        raise BrokenWeights(f"{missing[0]} is missing, and {index.name} names it: fetch it again")
    return paths


def shards(directory: Path) -> list[Path]:
    """The safetensors files of a model directory, each complete.

    Raises:
        BrokenWeights: a file is missing or truncated.
    """
    if (directory / SINGLE).is_file():
        paths = [directory / SINGLE]
    elif (directory / INDEX).is_file():
        paths = named_in(directory / INDEX)
    else:
        raise BrokenWeights(f"{directory} has neither {SINGLE} nor {INDEX}")
    for path in paths:
        try:
            with safe_open(path, "pt"):  # compares the size of the file with its header
                pass
        except SafetensorError as e:
            raise BrokenWeights(f"{path} is truncated or damaged ({e}): fetch it again") from e
    return paths


def stored_types(files: Iterable[Path]) -> str:
    """The data types of the stored weights, by the names of safetensors, such as ``BF16``."""
    types = set()
    for path in files:
        with safe_open(path, "pt") as weights:
            types |= {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
    return ", ".join(sorted(types))
