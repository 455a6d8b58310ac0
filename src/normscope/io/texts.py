"""The names of texts, and the folders of their tokens. No pandas."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from normscope.io.names import Key

DATASET = "dataset"  # the name of the default text, and its key in the configuration

TextName = Annotated[Key, Field(description=f"a key of texts, or {DATASET}, the default text")]


def text_of(texts: Sequence[str], seed: int) -> str:
    """The text that the model of a seed learns: each hundred of seeds has the next text."""
    return texts[seed // 100 % len(texts)]


def text_folder(dataset: str | Path, text: str) -> Path:
    """Return the folder of a text's tokens.

    Args:
        dataset: folder of the default text, which contains those of the other texts.
    """
    return Path(dataset) if text == DATASET else Path(dataset, text)
