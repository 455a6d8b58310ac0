"""The files of data/claims/: a document, its statements, and the test that decides each of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import ErrorDetails

from normscope.errors import Explained, reason, suggest
from normscope.io.names import PATTERN, Key
from normscope.io.yamlfile import laid_over, read_yaml
from normscope.schema import Distinct, Some, Strict
from normscope.verdicts.comparison import At, Best, Contrast, Need
from normscope.verdicts.reading import Quoted, Reading, Word

Verdict = Literal["holds", "fails", "none"]
LINK = r"^https?://[^\s<>]+$"
PATTERNS = {  # what the patterns of texts say
    PATTERN: "has only a-z, 0-9 and _, and begins with a letter",
    LINK: "begins with http:// or https://, and has no space",
}
COMPARED = ("compared_with", "uncompared")
ENTRY, UNASKED = "entry", "unasked"  # the models of a statement


class Published(Strict):
    """What a document says about its statement."""

    number: str | None = None
    verdict: Verdict = "holds"


class Statement(Strict):
    """What a document says, whether or not it can be tested."""

    where: Word = Field(description="the part of the document that makes it")
    primary: bool = Field(
        default=False,
        description="a main claim of its document; the others are decided only if all of these are",
    )
    statement: Word
    regime: Word | None = Field(
        default=None, description="how its authors tested it: their models, sizes, data and seeds"
    )
    published: Published = Field(
        default=Published(), description="what the document says: that it holds, if not given"
    )
    contradicts: Annotated[list[Key], Distinct] = Field(
        default=[], description="keys of statements that cannot hold together with this one"
    )
    refines: Annotated[list[Key], Distinct] = Field(
        default=[],
        description="keys of statements, of any document, that this one narrows or qualifies",
    )


class Entry(Statement):
    """A statement and its readings, which must agree: else the verdict is *depends*.

    Keys of a reading may also be given here: they are those of every reading that does not give
    them, and ``contrast`` is merged key by key.
    """

    study: Word = Field(description="the study that trains its models, and whose section shows it")
    figure: str = Field(description="the figure or table that shows it")
    differs_because: Word = Field(description="why the verdict may differ from the published one")
    limits: Word | None = Field(
        default=None, description="what a verdict leaves open, whatever it is"
    )
    readings: Annotated[dict[Key, Reading], Some] = Field(
        description="by name; the first is in the document's own words and regime"
    )

    @model_validator(mode="after")
    def _reach_is_of_a_reading(self) -> Self:
        for name, reading in self.readings.items():
            if reading.reach is None:
                continue
            base = self.readings.get(reading.reach)
            if base is None or base.reach is not None:
                known = [key for key, other in self.readings.items() if other.reach is None]
                near = suggest(reading.reach, known)
                raise ValueError(
                    f"readings.{name}.reach: no reading of the words is {reading.reach!r}; {near}"
                )
        if self.first.reach is not None:
            raise ValueError("readings: the first is in the document's words, without reach")
        return self

    @property
    def first(self) -> Reading:
        """The reading in the document's own words."""
        return next(iter(self.readings.values()))


class Unasked(Statement, Quoted):
    """A statement that no run of this project can test. It has no verdict, and is in no family."""

    cannot_be_asked: Word = Field(
        description="in place of a test, why there is none and what one would take"
    )

    @model_validator(mode="before")
    @classmethod
    def _has_no_test(cls, raw: Any) -> Any:
        tested = (Entry.model_fields | Reading.model_fields).keys() - cls.model_fields.keys()
        if isinstance(raw, dict) and (given := [key for key in raw if key in tested]):
            raise ValueError(f"cannot_be_asked excludes a test: leave out {', '.join(given)}")
        return raw


def _kind(raw: Any) -> str:
    """The name of the model of an entry, by which pydantic chooses it."""
    has_no_test = isinstance(raw, dict) and "cannot_be_asked" in raw
    return UNASKED if has_no_test or isinstance(raw, Unasked) else ENTRY


Kinds = Annotated[Entry, Tag(ENTRY)] | Annotated[Unasked, Tag(UNASKED)]


class Document(Strict):
    """A document and its statements: one file of data/claims/, whose name is the document's."""

    title: Word
    author: str | None = None
    link: Annotated[str, Field(pattern=LINK)] | None = None
    compared_with: Word | None = Field(
        default=None, description="that of all quotes that do not give it"
    )
    uncompared: Word | None = Field(
        default=None, description="that of all quotes that do not give it"
    )
    asserts: bool = Field(
        default=True,
        description="whether somebody asserts these statements; if not, they are questions of this "
        "project, which are tested and not counted",
    )
    statements: Annotated[dict[Key, Annotated[Kinds, Discriminator(_kind)]], Some] = Field(
        alias="claims", description="the statements, by a key unique in the ledger"
    )

    @property
    def claims(self) -> dict[str, Entry]:
        """The statements that are tested, by key."""
        return {key: one for key, one in self.statements.items() if isinstance(one, Entry)}

    @model_validator(mode="after")
    def _assertions_are_quoted(self) -> Self:
        for key, entry in self.statements.items():
            if not self.asserts and entry.published.verdict != "none":
                raise ValueError(f"claims.{key}.published: nobody asserts it: leave it out")
            if self.asserts and entry.published.verdict == "none":
                raise ValueError(
                    f"claims.{key}.published: somebody asserts it: give holds or fails; questions "
                    "that nobody asserts are in a document with asserts: false"
                )
            quotes: dict[str, Quoted] = {"": entry} if isinstance(entry, Unasked) else {}
            if isinstance(entry, Entry):
                quotes = {f".readings.{name}": one for name, one in entry.readings.items()}
            for place, one in quotes.items():
                if self.asserts and one.quote is None:
                    raise ValueError(
                        f"claims.{key}{place}: needs a quote, the words of the document that "
                        "support it"
                    )
                if self.asserts and one.compared_with is None and one.uncompared is None:
                    raise ValueError(
                        f"claims.{key}{place}: needs compared_with, here or for the whole "
                        "document: the part of it with which the quote was compared; or "
                        "uncompared: why it could not be"
                    )
        return self


@dataclass(frozen=True)
class Claims:
    """The documents of the ledger by name, in the order in which they are shown."""

    documents: Mapping[str, Document]

    def __iter__(self) -> Iterator[tuple[str, str, Entry]]:
        """Name of the document, key and entry of every statement that is tested."""
        for name, key, entry in self.every:
            if isinstance(entry, Entry):
                yield name, key, entry

    @property
    def every(self) -> list[tuple[str, str, Entry | Unasked]]:
        """Name of the document, key and entry of every statement, tested or not."""
        return [
            (name, key, entry)
            for name, document in self.documents.items()
            for key, entry in document.statements.items()
        ]

    @property
    def entries(self) -> dict[str, Entry]:
        """The entry of every statement that is tested, by its key."""
        return {key: entry for _, key, entry in self}

    @property
    def disputes(self) -> list[tuple[str, str]]:
        """The pairs of statements that cannot both hold, in the order of the documents.

        It is enough if one of the two names the other one. A statement of a file that was not
        loaded is left out.
        """
        order = {key: place for place, (_, key, _) in enumerate(self.every)}
        named = [
            sorted((order[key], order[other]))
            for _, key, entry in self.every
            for other in entry.contradicts
            if other in order
        ]
        keys = list(order)
        return [(keys[one], keys[other]) for one, other in sorted(set(map(tuple, named)))]


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
            problems.append(f"{path}: rename it: a document's name {PATTERNS[PATTERN]}")
            continue
        raw = read_yaml(path)
        try:
            documents[path.stem] = Document.model_validate(completed(raw), strict=True)
        except ValidationError as e:
            problems += [f"{path}: {line}" for line in _explained(e, raw)]
    claims = Claims(documents)
    first: dict[str, str] = {}
    for name, key, _ in claims.every:
        if first.setdefault(key, name) != name:
            problems.append(f"claims.{key} is in the documents {first[key]} and {name}: rename one")
    if problems:
        raise Explained("\n".join(problems))
    return claims


def completed(raw: Any) -> Any:
    """A document whose readings have the keys that their entry or document gives for all of them.

    Questions have no published verdict. What is not a mapping where one is needed stays as it is,
    for the validation to name.
    """
    if not (isinstance(raw, dict) and isinstance(raw.get("claims"), dict)):
        return raw
    of_all = {key: raw[key] for key in COMPARED if key in raw}
    claims = {key: _completed(entry, of_all) for key, entry in raw["claims"].items()}
    if raw.get("asserts") is False:
        unpublished = {"published": {"verdict": "none"}}
        claims = laid_over(dict.fromkeys(claims, unpublished), claims)
    return {**raw, "claims": claims}


def _completed(entry: Any, of_all: dict[str, Any]) -> Any:
    if not isinstance(entry, dict):
        return entry
    if "cannot_be_asked" in entry:
        return _over(of_all, entry)
    given = {key: value for key, value in entry.items() if key in Reading.model_fields}
    rest = {key: value for key, value in entry.items() if key not in given}
    if isinstance(readings := entry.get("readings"), dict):
        shared = _over(of_all, given)
        rest["readings"] = {name: _over(shared, _whole(name, readings)) for name in readings}
    return rest


def _over(base: dict[str, Any], given: Any) -> Any:
    """Keys laid over those of all readings; of the two of ``COMPARED``, only one can be given."""
    if isinstance(given, dict) and not given.keys().isdisjoint(COMPARED):
        base = {key: value for key, value in base.items() if key not in COMPARED}
    return laid_over(base, given)


def _whole(name: str, readings: Mapping[str, Any]) -> Any:
    """A reading, with the keys of the one that it asks of other models, but for its words.

    What is not a name of a reading is left for the validation to report.
    """
    reading = readings[name]
    if not isinstance(reading, dict) or not isinstance(reading.get("reach"), str):
        return reading
    of_words = {k: r for k, r in readings.items() if isinstance(r, dict) and "reach" not in r}
    base = of_words.get(reading["reach"], next(iter(of_words.values()), {}))
    return _over({key: base[key] for key in base if key != "restated"}, reading)


def _explained(errors: ValidationError, raw: Any) -> list[str]:
    """One line for each faulty place: its keys, and the reasons."""
    reasons: dict[str, list[str]] = {}
    for error in errors.errors():
        reasons.setdefault(_place(error, raw), []).append(_reason(error))
    return [
        ": ".join(filter(None, (place, " or ".join(dict.fromkeys(given)))))
        for place, given in reasons.items()
    ]


def _place(error: ErrorDetails, raw: Any) -> str:
    """The keys that lead to an error in the file, without the types that pydantic tried."""
    places: list[str] = []
    node: Any = raw
    entry: Any = None
    for part in _keys(error):
        if len(places) == 2:
            entry = node
        if len(places) == 4 and not _has(node, part) and _has(entry, part):
            node, places = entry, places[:2]  # the entry gives it for all of its readings
        is_there = _has(node, part)
        if not is_there and error["type"] != "missing":
            break
        places.append(str(part))
        if is_there:
            node = cast(Any, node)[part]
    return ".".join(places)


def _has(node: Any, part: str | int) -> bool:
    return (
        part in node if isinstance(node, dict) else isinstance(node, list) and isinstance(part, int)
    )


def _reason(error: ErrorDetails) -> str:
    """What is wrong, and the nearest key where one is unknown."""
    pattern = error.get("ctx", {}).get("pattern", "")
    known = _keys_at(list(map(str, _keys(error)))) if error["type"] == "extra_forbidden" else ()
    return PATTERNS.get(pattern) or reason(error, known)


def _keys(error: ErrorDetails) -> list[str | int]:
    """The place of an error, without the name of the model of an entry."""
    return [part for i, part in enumerate(error["loc"]) if i != 2 or part not in (ENTRY, UNASKED)]


def _keys_at(places: list[str]) -> Any:
    """The keys of the model that a place is in."""
    models = {
        **{"published": Published, "contrast": Contrast},
        **{"at": At, "best": Best, "needs": Need},
    }
    for place in reversed(places[:-1]):
        if place in models:
            return models[place].model_fields
    if len(places) == 1:
        return Document.model_fields
    return Entry.model_fields | Reading.model_fields | Unasked.model_fields
