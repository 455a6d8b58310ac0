"""Entries of data/claims.yaml: a statement, where it was made, and the test that decides it."""

from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from normscope.errors import Explained
from normscope.schema import PositiveFloat, Strict

Word = Annotated[str, Field(min_length=1)]
Verdict = Literal["holds", "fails", "none"]


class Document(Strict):
    """Where statements were made."""

    title: Word
    author: str | None = None
    link: str | None = None


class Published(Strict):
    """What a document says of its own statement."""

    number: str | None = None
    verdict: Verdict = "holds"


class Entry(Strict):
    """A statement and its test.

    ``bound`` is what the quantity is compared with, ``margin`` how far from it counts as the same:
    a number, on a logarithmic scale a factor, or ``baseline``: so many standard deviations
    (config: ``margin_sds``) of the models that the others are compared with. ``holds_in``: whether
    the statement is about all of its cases, or about any of them.
    """

    document: str = Field(description="a key of documents")
    where: Word = Field(description="part of the document")
    statement: Word
    quantity: Word
    published: Published = Published()
    test: Literal["sign_flip", "equivalence", "t", "permutation", "fact", "none"]
    criterion: Word = Field(description="the test in words; {bound} and {margin} are filled in")
    direction: Literal["greater", "less", "within"] | None = None
    holds_in: Literal["all", "any"] = "all"
    bound: Annotated[float, Field(allow_inf_nan=False)] | None = None
    margin: PositiveFloat | Literal["baseline"] | None = None
    scale: Literal["linear", "log"] = "linear"
    unit: Literal["model", "prompt", "family", "formula"]
    figure: str = Field(description="name of the figure or table that shows it")
    differs_because: Word = Field(description="why the published verdict may not stand")

    @model_validator(mode="after")
    def _test_is_whole(self) -> Self:
        if (self.test == "equivalence") != (self.direction == "within"):
            raise ValueError("test: equivalence goes with direction: within, and no other")
        if self.test == "equivalence" and self.margin is None:
            raise ValueError("test: equivalence needs a margin")
        if self.test in ("t", "permutation", "none") and (self.bound, self.margin) != (None, None):
            raise ValueError(f"test: {self.test} takes no bound and no margin")
        if self.test == "sign_flip" and self.direction is None:
            raise ValueError("test: sign_flip needs a direction")
        if self.scale == "log" and self.bound is not None and self.bound <= 0:
            raise ValueError(f"bound: {self.bound} has no logarithm")
        if self.scale == "log" and isinstance(self.margin, float) and self.margin <= 1:
            raise ValueError(f"margin: a factor of {self.margin} leaves nothing within it")
        return self

    @model_validator(mode="after")
    def _criterion_can_be_filled_in(self) -> Self:
        try:
            _ = self.asks
        except (KeyError, IndexError, TypeError, ValueError) as e:
            raise ValueError(
                f"criterion: only {{bound}} and {{margin}} are filled in: {e}"
            ) from None
        return self

    @property
    def asks(self) -> str:
        """The criterion with its numbers."""
        return self.criterion.format(bound=self.bound, margin=self.margin)

    @property
    def limit(self) -> float:
        """The bound, which the test needs.

        Raises:
            Explained: there is none.
        """
        if self.bound is None:
            raise Explained(f"data/claims.yaml: {self.statement!r} has no bound: give its test one")
        return self.bound


class Claims(Strict):
    """data/claims.yaml."""

    documents: dict[str, Document]
    claims: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Entry]

    @model_validator(mode="after")
    def _documents_are_named(self) -> Self:
        for key, entry in self.claims.items():
            if entry.document not in self.documents:
                raise ValueError(f"claims.{key}.document: {entry.document!r} is not in documents")
        return self


class Entries(dict[str, Entry]):
    """Entries by key; what the workflow tests and the file lacks is an error of the file."""

    def __missing__(self, key: str) -> Entry:
        raise Explained(f"claims.{key} is missing: restore it, as the workflow tests it")


def load(path: Path) -> Claims:
    """The validated entries of a file.

    Raises:
        Explained: it is no YAML, or an entry is wrong: each with where it is.
    """
    try:
        return Claims.model_validate(yaml.safe_load(path.read_text()), strict=True)
    except yaml.YAMLError as e:
        raise Explained(f"{path} is no YAML: {e}") from None
    except ValidationError as e:
        lines = [f"{'.'.join(map(str, x['loc']))}: {x['msg']}" for x in e.errors()]
        raise Explained("\n".join(f"{path}: {line}" for line in lines)) from None
