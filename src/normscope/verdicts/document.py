"""The files of data/claims/: a document, what it says, and the comparisons that test it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from normscope.errors import Explained, explain
from normscope.io.names import PATTERN
from normscope.io.yamlfile import overlay, read_yaml
from normscope.schema import Strict
from normscope.verdicts.comparison import Comparison

LINK = r"^https?://[^\s<>]+$"
MAIN = ""  # the name of the main comparison
TESTED = tuple(Comparison.model_fields)


def _line(text: str) -> str:
    line = " ".join(text.split())
    if not line or not line.isprintable():
        raise ValueError("is empty, or has characters that cannot be printed")
    return line


Text = Annotated[str, AfterValidator(_line)]


class Statement(Strict):
    """What a document says, and how it is tested. A question ends with a question mark.

    Args:
        says: The statement, in one sentence.
        quote: The words of the document that support it.
        where: The part of the document that has them.
        theirs: How its authors tested it, and what they found.
        ours: How the models here differ from theirs, if they do.
        measure, models, compare, expect: The main comparison (``Comparison``). A statement
            without them cannot be tested here, and its note says why.
        also: Other comparisons by what distinguishes them, laid over the main one.
        note: Why the bound is as it is, and what the verdict leaves open.
        figure: The figure that shows it, if one does.
    """

    says: Text
    quote: Text | None = None
    where: Text
    theirs: Text | None = None
    ours: Text | None = None
    measure: str | None = None
    models: dict[str, Any] = Field(default={})
    compare: str = ""
    expect: str | None = None
    also: dict[Text, dict[str, Any]] = Field(default={})
    note: Text | None = None
    figure: str = ""
    comparisons: SkipJsonSchema[dict[str, Comparison]] = Field(default={}, exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _with_comparisons(cls, raw: Any) -> Any:
        """The statement with its comparisons, each validated with the path of its own keys."""
        if not isinstance(raw, dict):
            return raw
        if "comparisons" in raw:
            raise ValueError("comparisons: unknown key; give others than the main one in also")
        main = {key: raw[key] for key in TESTED if raw.get(key) not in (None, "", {})}
        if not main:
            return raw
        parts = {MAIN: main}
        also = raw.get("also", {})
        for name, changes in also.items() if isinstance(also, dict) else ():
            if isinstance(changes, dict) and (extra := [k for k in changes if k not in TESTED]):
                raise ValueError(f"also.{name}.{extra[0]}: unknown key; known: {', '.join(TESTED)}")
            parts[str(name)] = overlay(main, changes)
        return {**raw, "comparisons": {name: _comparison(name, one) for name, one in parts.items()}}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.is_question and not self.quote:
            raise ValueError("needs a quote, the words that support it; a question ends with ?")
        if not self.comparisons and (self.also or not self.note):
            raise ValueError("without a measure, needs a note that says why it cannot be tested")
        return self

    @property
    def is_question(self) -> bool:
        """Whether nobody asserts it."""
        return self.says.endswith("?")

    @property
    def tables(self) -> list[str]:
        """The tables that its comparisons read, as ``study.table``."""
        return list(dict.fromkeys(one.measurement.table for one in self.comparisons.values()))

    @property
    def studies(self) -> list[str]:
        """The studies whose tables these are."""
        return list(dict.fromkeys(one.measurement.study for one in self.comparisons.values()))


def _comparison(name: str, raw: dict[str, Any]) -> Comparison:
    """A comparison, without the columns that an overlay takes away."""
    if isinstance(models := raw.get("models"), dict):
        raw = raw | {"models": {k: v for k, v in models.items() if v is not None}}
    try:
        return Comparison.model_validate(raw)
    except ValidationError as e:
        place = f"also.{name}." if name else ""
        raise ValueError(place + explain(e.errors(), Comparison.model_json_schema)[0]) from None


class Head(Strict):
    """What a document is.

    Args:
        title, by, link: Of the document; ``by`` is its name on pages.
        checked: With what its quotes were compared.
    """

    title: Text
    by: Text | None = None
    link: Annotated[str, Field(pattern=LINK)] | None = None
    checked: Text | None = None

    @property
    def name(self) -> str:
        """Its name on pages."""
        return self.by or self.title


class Document(Head):
    """A document: one file of data/claims/, whose name is the document's.

    Args:
        statements: By a key that is unique in all documents.
    """

    statements: Annotated[
        dict[Annotated[str, Field(pattern=PATTERN)], Statement], Field(min_length=1)
    ]

    @model_validator(mode="after")
    def _quotes_are_checked(self) -> Self:
        if self.checked is None and any(one.quote for one in self.statements.values()):
            raise ValueError("checked: say with what the quotes were compared")
        return self

    @property
    def head(self) -> Head:
        """The document without its statements."""
        return Head(**self.model_dump(exclude={"statements"}))


@dataclass(frozen=True)
class Claims:
    """All documents by the names of their files, in the order in which they are shown."""

    documents: Mapping[str, Document]

    def __iter__(self) -> Iterator[tuple[str, str, Statement]]:
        """Name of the document, key and statement, of every statement."""
        for name, document in self.documents.items():
            for key, statement in document.statements.items():
                yield name, key, statement

    @property
    def statements(self) -> dict[str, Statement]:
        """Every statement by its key."""
        return {key: statement for _, key, statement in self}


def load(paths: Iterable[Path]) -> Claims:
    """Read and validate the files of the documents.

    Args:
        paths: One YAML file per document: its head, and its statements by key.

    Raises:
        Explained: A file is not YAML, a statement is wrong, or a key occurs twice. Every line
            names the file, the key, and what is right.
    """
    documents: dict[str, Document] = {}
    problems: list[str] = []
    for path in paths:
        if not re.fullmatch(PATTERN, path.stem):
            problems.append(f"{path}: rename it: only a-z, 0-9 and _, and a letter first")
            continue
        raw = read_yaml(path)
        if not isinstance(raw, dict):
            problems.append(f"{path}: a document has keys with values, and this file has none")
            continue
        head = {key: raw[key] for key in Head.model_fields if key in raw}
        rest = {key: value for key, value in raw.items() if key not in head}
        try:
            documents[path.stem] = Document.model_validate({**head, "statements": rest})
        except ValidationError as e:
            lines = explain(e.errors(), Document.model_json_schema)
            problems += [f"{path}: {line.replace('statements.', '')}" for line in lines]
    claims = Claims(documents)
    first: dict[str, str] = {}
    for name, key, _ in claims:
        if first.setdefault(key, name) != name:
            problems.append(f"{key} is in the documents {first[key]} and {name}: rename one")
    if problems:
        raise Explained("\n".join(problems))
    return claims
