"""Checks of the arguments that users pass to the public functions."""

import os
from pathlib import Path
from typing import TypeVar

from normscope.errors import Explained

Kind = TypeVar("Kind")


def expect(name: str, value: object, kind: type[Kind], way_out: str) -> Kind:
    """Check the class of an argument and return its value. A bool is not accepted as an int.

    Args:
        name: of the argument.
        value: what the user passed.
        kind: the class that it must have.
        way_out: what to give instead.

    Raises:
        Explained: the value has another class.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Explained(f"{name} is of type {type(value).__name__}: give {way_out}")
    return value


def folder_of(results: object) -> Path:
    """The folder that the argument ``results`` names.

    Raises:
        Explained: it is not a path, or the folder does not exist.
    """
    way_out = "the folder of a run, such as 'results'"
    try:
        folder = Path(expect("results", results, (str, os.PathLike), way_out))  # pyright: ignore[reportArgumentType]: a tuple of classes
        if folder.is_dir():
            return folder
    except (OSError, TypeError, ValueError) as e:
        raise Explained(f"results is {results!r}, which cannot be opened ({e})") from e
    raise Explained(f"results: there is no folder {str(folder)!r}; give {way_out}")
