"""The files of data/claims/: a document, its statements, and the test that decides each of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from normscope.errors import Explained, suggest
from normscope.io.names import PATTERN, Key
from normscope.io.yamlfile import read_yaml
from normscope.ledger.comparison import At, Best, Contrast, Need
from normscope.ledger.wording import check_fields
from normscope.schema import PositiveFloat, Some, Strict

Word = Annotated[str, Field(min_length=1)]
Verdict = Literal["holds", "fails", "none"]
UNITS = {"seed": "model", "prompt": "prompt", "family": "family"}  # by the column that is counted


class Published(Strict):
    """What a document says about its statement."""

    number: str | None = None
    verdict: Verdict = "holds"


class Changed(Strict):
    """A change of a test after the data that decide it had been seen."""

    commit: Annotated[str, Field(pattern="^[0-9a-f]{7,40}$")] = Field(
        description="the commit that changed the test"
    )
    was: Literal["holds", "fails", "undecided"] = Field(
        description="the verdict of the previous test, from the same data"
    )
    why: Word = Field(description="what was changed, and why")


class Entry(Strict):
    """A statement and its test.

    The quantity is compared with ``bound``. ``margin`` is the smallest relevant difference from it
    (on a logarithmic scale a factor): with ``direction: within``, the statement is that the
    quantity lies within the margin; with ``greater`` and ``less``, that it differs by more. A test
    that a contrast cannot express is a function in the study's module ``claims``, decorated with
    ``@claim`` and the entry's key.
    """

    study: Word = Field(description="the study that trains its models, and whose section shows it")
    where: Word = Field(description="the part of the document that makes it")
    primary: bool = Field(
        default=False,
        description="a main claim of its document; the others are decided only if all of these are",
    )
    statement: Word
    restated: Word | None = Field(default=None, description="the tested statement in plain words")
    quantity: Word
    published: Published = Published()
    test: Literal["t", "equivalence", "sign_flip", "permutation", "fact", "none"]
    criterion: Word = Field(description="the test in words, with the fields {bound} and {margin}")
    direction: Literal["greater", "less", "within"] | None = None
    holds_in: Literal["all", "any", "primary"] = Field(
        default="all",
        description="whether it is about all of its cases or about any, or is decided by the case "
        "contrast.primary",
    )
    bound: Annotated[float, Field(allow_inf_nan=False)] | None = None
    bound_because: Word | None = Field(
        default=None, description="the reason for the bound, unless it is that of no difference"
    )
    margin: PositiveFloat | None = None
    margin_because: Word | None = Field(default=None, description="the reason for the margin")
    scale: Literal["linear", "log"] = "linear"
    unit: Literal["model", "prompt", "family", "formula"]
    contrast: Contrast | None = None
    figure: str = Field(description="the figure or table that shows it")
    differs_because: Word = Field(description="why the verdict may differ from the published one")
    changed_after: Changed | None = Field(
        default=None,
        description="marks an exploratory verdict: a test changed after its data had been seen",
    )

    @model_validator(mode="after")
    def _test_is_whole(self) -> Self:
        if (self.test == "equivalence") != (self.direction == "within"):
            raise ValueError("test: equivalence and direction: within go together")
        if self.test == "equivalence" and self.margin is None:
            raise ValueError("test: equivalence needs a margin")
        if (self.margin is None) != (self.margin_because is None):
            raise ValueError("margin and margin_because go together: a margin needs a reason")
        if self.test in ("permutation", "none") and (self.bound, self.margin) != (None, None):
            raise ValueError(f"test: {self.test} takes no bound and no margin")
        if self.test == "equivalence" and self.bound is None:
            raise ValueError("test: equivalence needs a bound")
        if self.test == "sign_flip" and self.direction is None:
            raise ValueError("test: sign_flip needs a direction")
        if self.scale == "log" and self.bound is not None and self.bound <= 0:
            raise ValueError(f"bound: {self.bound} has no logarithm")
        if self.scale == "log" and self.margin is not None and self.margin <= 1:
            raise ValueError(f"margin: a factor must be above 1, got {self.margin}")
        is_of_no_difference = self.bound in (None, 1 if self.scale == "log" else 0)
        if not is_of_no_difference and self.bound_because is None:
            raise ValueError("a bound other than 0 (with scale: log 1) needs bound_because")
        return self

    @model_validator(mode="after")
    def _contrast_fits_the_test(self) -> Self:
        c = self.contrast
        if (self.holds_in == "primary") != (c is not None and c.primary is not None):
            raise ValueError("holds_in: primary and contrast.primary go together")
        if c is None:
            return self
        if self.test not in ("t", "sign_flip", "equivalence", "fact"):
            raise ValueError(
                f"test: {self.test} needs a function: not t, sign_flip, equivalence or fact"
            )
        if self.bound is None:
            raise ValueError("contrast: needs a bound to be compared with")
        if self.direction is None:
            raise ValueError("contrast: needs a direction")
        if (c.over is not None) and self.scale != "log":
            raise ValueError("contrast.over: a ratio needs scale: log")
        if c.less is not None and self.scale == "log":
            raise ValueError("contrast.less: a difference has no logarithm: give over, or no scale")
        if self.test == "fact" and (
            c.other or c.each or c.at or c.best or c.needs or c.sentence or c.primary is not None
        ):
            raise ValueError(
                "contrast: a fact has only table, measure and cells: every row is tested"
            )
        unit = "formula" if self.test == "fact" else UNITS.get(c.replicates, self.unit)
        if self.unit != unit:
            counted = "a fact" if self.test == "fact" else f"contrast.replicates: {c.replicates}"
            raise ValueError(f"unit: {self.unit} does not fit {counted}: give {unit}")
        return self

    @model_validator(mode="after")
    def _criterion_can_be_filled_in(self) -> Self:
        try:
            check_fields(self.criterion, {"bound": self.bound, "margin": self.margin})
        except ValueError as e:
            raise ValueError(f"criterion: {e}") from None
        return self

    @property
    def asks(self) -> str:
        """The criterion with its numbers."""
        return self.criterion.format(bound=self.bound, margin=self.margin)

    def agrees_with(self, value: float) -> bool:
        """Whether the quantity is where the statement says, beyond the margin if it has one."""
        low, high = self.margins
        if self.direction == "within":
            return low <= value <= high
        return value > high if self.direction == "greater" else value < low

    @property
    def margins(self) -> tuple[float, float]:
        """The bound minus and plus the margin, which is a factor on a logarithmic scale."""
        if self.scale == "log":
            margin = self.margin or 1.0
            return self.limit / margin, self.limit * margin
        margin = self.margin or 0.0
        return self.limit - margin, self.limit + margin

    @property
    def limit(self) -> float:
        """The bound.

        Raises:
            Explained: The entry has none.
        """
        if self.bound is None:
            raise Explained(f"{self.statement!r} has no bound: give its test one")
        return self.bound


class Document(Strict):
    """A document and its statements: one file of data/claims/, whose name is the document's."""

    title: Word
    author: str | None = None
    link: Annotated[str, Field(pattern=r"^https?://[^\s<>]+$")] | None = None
    claims: Annotated[dict[Key, Entry], Some] = Field(
        description="the statements, by a key unique in the ledger"
    )


@dataclass(frozen=True)
class Claims:
    """The documents of the ledger by name, in the order in which they are shown."""

    documents: Mapping[str, Document]

    def __iter__(self) -> Iterator[tuple[str, str, Entry]]:
        """Name of the document, key and entry of every statement."""
        for name, document in self.documents.items():
            for key, entry in document.claims.items():
                yield name, key, entry

    @property
    def entries(self) -> dict[str, Entry]:
        """The entry of every statement, by its key."""
        return {key: entry for _, key, entry in self}


def load(paths: Iterable[Path]) -> Claims:
    """Read and validate the files of the documents.

    Raises:
        Explained: A file is not YAML, entries are wrong, or a key occurs twice. Every line names
            the file, the key, and what is right.
    """
    documents: dict[str, Document] = {}
    problems: list[str] = []
    for path in paths:
        if not re.fullmatch(PATTERN, path.stem):
            problems.append(f"{path}: rename it: a document's name has only a-z, 0-9 and _")
            continue
        raw = read_yaml(path)
        try:
            documents[path.stem] = Document.model_validate(raw, strict=True)
        except ValidationError as e:
            problems += [f"{path}: {line}" for line in _explained(e, raw)]
    claims = Claims(documents)
    first: dict[str, str] = {}
    for name, key, _ in claims:
        if first.setdefault(key, name) != name:
            problems.append(f"claims.{key} is in the documents {first[key]} and {name}: rename one")
    if problems:
        raise Explained("\n".join(problems))
    return claims


def _explained(errors: ValidationError, raw: Any) -> list[str]:
    """One line for each faulty place: its keys, and the reasons."""
    reasons: dict[str, list[str]] = {}
    for error in errors.errors():
        reasons.setdefault(_place(error, raw), []).append(_reason(error))
    return [
        ": ".join(filter(None, (place, " or ".join(given)))) for place, given in reasons.items()
    ]


def _place(error: ErrorDetails, raw: Any) -> str:
    """The keys that lead to an error in the file, without the types that pydantic tried."""
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
    if error["type"] == "model_type":
        return "must be keys with values"
    if error["type"] != "extra_forbidden":
        return reason
    places = [str(part) for part in error["loc"]]
    return f"{reason}; {suggest(places[-1], _keys_at(places))}"


def _keys_at(places: list[str]) -> Any:
    """The keys of the model that a place is in."""
    models = {
        **{"published": Published, "changed_after": Changed},
        **{"contrast": Contrast, "at": At, "best": Best, "needs": Need},
    }
    for place in reversed(places[:-1]):
        if place in models:
            return models[place].model_fields
    return (Entry if len(places) > 1 else Document).model_fields
