"""Entries of data/claims.yaml: a statement, where it was made, and the test that decides it."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from normscope.errors import Explained
from normscope.io.yamlfile import read_yaml
from normscope.ledger.comparison import At, Best, Column, Contrast, Need
from normscope.ledger.vocabulary import suggest
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


class _Name(str):
    """The name of a column, which stands as it is where a number would be formatted."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return str(self)


class Entry(Strict):
    """A statement and its test.

    ``bound`` is what the quantity is compared with, ``margin`` how far from it counts as the same:
    a number (on a logarithmic scale a factor), or a column of the contrast's table. ``holds_in``:
    whether the statement is about all of its cases, or about any of them. What a contrast cannot
    say, a function of the study's module ``claims`` does, marked ``@claim`` with the entry's key.
    """

    study: Word = Field(description="whose models it is about, and whose section shows it")
    document: str = Field(description="a key of documents")
    where: Word = Field(description="part of the document")
    statement: Word
    quantity: Word
    published: Published = Published()
    test: Literal["sign_flip", "equivalence", "t", "permutation", "fact", "none"]
    criterion: Word = Field(description="the test in words; {bound} and {margin} are filled in")
    direction: Literal["greater", "less", "within"] | None = None
    holds_in: Literal["all", "any"] = "all"
    bound: Annotated[float, Field(allow_inf_nan=False)] | Column | None = None
    margin: PositiveFloat | Column | None = None
    scale: Literal["linear", "log"] = "linear"
    unit: Literal["model", "prompt", "family", "formula"]
    contrast: Contrast | None = None
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
        if self.scale == "log" and isinstance(self.bound, float) and self.bound <= 0:
            raise ValueError(f"bound: {self.bound} has no logarithm")
        if self.scale == "log" and isinstance(self.margin, float) and self.margin <= 1:
            raise ValueError(f"margin: a factor of {self.margin} leaves nothing within it")
        return self

    @model_validator(mode="after")
    def _contrast_fits_the_test(self) -> Self:
        c = self.contrast
        if c is None:
            if isinstance(self.bound, str) or isinstance(self.margin, str):
                raise ValueError("bound, margin: a column needs a contrast, whose table has it")
            return self
        if self.test not in ("sign_flip", "equivalence", "fact"):
            raise ValueError(
                f"test: {self.test} is of no contrast; sign_flip, equivalence and fact are"
            )
        if self.bound is None:
            raise ValueError("contrast: needs a bound to be compared with")
        if (c.over is not None) and self.scale != "log":
            raise ValueError("contrast.over: a ratio needs scale: log")
        if self.test == "fact" and self.direction is None:
            raise ValueError("contrast: a fact needs a direction")
        if self.test == "fact" and (c.other or c.each or c.at or c.best or c.needs):
            raise ValueError("contrast: a fact is of each row alone, of table, measure and cells")
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
        given = {"bound": self.bound, "margin": self.margin}
        words = {k: _Name(v) if isinstance(v, str) else v for k, v in given.items()}
        return self.criterion.format(**words)

    @property
    def limit(self) -> float:
        """The bound where it is a number, which a function's test needs.

        Raises:
            Explained: it is none.
        """
        if not isinstance(self.bound, float | int):
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
                near = suggest(entry.document, self.documents)
                raise ValueError(
                    f"claims.{key}.document: {entry.document!r} is not in documents; {near}"
                )
        return self


def load(path: Path) -> Claims:
    """The validated entries of a file.

    Raises:
        Explained: it is no YAML, or entries are wrong: each with where it is, and what is right.
    """
    raw = read_yaml(path)
    try:
        return Claims.model_validate(raw, strict=True)
    except ValidationError as e:
        reasons: dict[str, list[str]] = {}
        for error in e.errors():
            reasons.setdefault(_place(error, raw), []).append(_reason(error))
        lines = [f"{path}: {place}: {' or '.join(given)}" for place, given in reasons.items()]
        raise Explained("\n".join(lines)) from None


def _place(error: ErrorDetails, raw: Any) -> str:
    """Where an error is, by the keys of the file: a kind of value that was tried is none."""
    places: list[str] = []
    node: Any = raw
    for part in error["loc"]:
        is_item = isinstance(node, list) and isinstance(part, int)
        is_there = part in node if isinstance(node, dict) else is_item
        if not is_there and error["type"] != "missing":
            break
        places.append(str(part))
        if is_there:
            node = cast(Any, node)[part]
    return ".".join(places)


def _reason(error: ErrorDetails) -> str:
    """What is wrong, and the nearest key where one is unknown."""
    reason = error["msg"].removeprefix("Value error, ")
    if error["type"] != "extra_forbidden":
        return reason
    places = [str(part) for part in error["loc"]]
    return f"{reason}; {suggest(places[-1], _keys_at(places))}"


def _keys_at(places: list[str]) -> Any:
    """The keys of the model that a place is in."""
    models = {"published": Published, "contrast": Contrast, "at": At, "best": Best, "needs": Need}
    for place in reversed(places[:-1]):
        if place in models:
            return models[place].model_fields
    return {"claims": Entry, "documents": Document}.get(places[0], Claims).model_fields
