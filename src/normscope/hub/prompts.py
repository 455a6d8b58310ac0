"""The prompts that models are measured on, from data/prompts.yaml. Does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from normscope.errors import Explained, explain
from normscope.io.yamlfile import read_yaml
from normscope.schema import Strict, distinct

Text = Annotated[str, Field(min_length=1)]


class PromptsError(Explained):
    """The file of prompts is invalid."""


class _Category(Strict):
    expected_entropy: str | None = None  # of its author; nothing reads it
    complexity: int | None = None
    prompts: Annotated[list[Text], Field(min_length=1)]


class _File(Strict):
    sets: Annotated[dict[str, dict[str, _Category]], Field(min_length=1)]


@dataclass(frozen=True)
class Prompt:
    """One prompt; ``name`` is its category and its number within the category."""

    set: str
    category: str
    name: str
    text: str
    complexity: int | None

    @property
    def words(self) -> int:
        """Number of words in the text."""
        return len(self.text.split())


def read_prompts(path: Path) -> list[Prompt]:
    """All prompts of all sets, in the order of the file.

    Raises:
        PromptsError: the file is not valid YAML, a key is unknown, or a prompt occurs twice.
    """
    try:
        content = _File.model_validate(read_yaml(path))
    except Explained as e:
        raise PromptsError(str(e)) from e
    except ValidationError as e:
        problems = explain(e.errors(), _File.model_json_schema)
        raise PromptsError("\n".join(f"{path}: {problem}" for problem in problems)) from e
    prompts = [
        Prompt(name, title, f"{title}-{i}", text, category.complexity)
        for name, categories in content.sets.items()
        for title, category in categories.items()
        for i, text in enumerate(category.prompts, 1)
    ]
    try:
        distinct([f"{p.text!r} in the set {p.set}" for p in prompts])
        distinct([p.name for p in prompts])
    except ValueError as e:
        raise PromptsError(f"{path}: {e}") from e
    return prompts
