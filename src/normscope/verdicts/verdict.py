"""The verdict of a statement, and all verdicts of a run: the content of claims.json.

The verdict is that of the main comparison, and *mixed* if another decided comparison contradicts
it. A question is answered yes, no, mixed or undecided, and is not counted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from normscope.columns import Column, Table
from normscope.errors import Explained
from normscope.formats import Format
from normscope.io.files import write_text
from normscope.schema import Strict
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.document import MAIN, Claims, Head, Statement
from normscope.verdicts.expression import columns_in
from normscope.verdicts.frozen import Plan, digest
from normscope.verdicts.sample import NO_DATA, is_log, sample
from normscope.verdicts.test import Result, result
from normscope.verdicts.vocabulary import Vocabulary

Word = Literal["as claimed", "opposite", "mixed", "undecided", "not testable here", "yes", "no"]
WORDS: tuple[Word, ...] = ("as claimed", "opposite", "mixed", "undecided", "not testable here")
ANSWERS: Mapping[Word, Word] = {"as claimed": "yes", "opposite": "no"}
Certainty = Literal["high", "moderate", "low"]
CERTAINTIES: tuple[Certainty, ...] = ("high", "moderate", "low")


class Quantity(Strict):
    """What a comparison measures, for a reader.

    Args:
        meaning: The measure, as its table declares it.
        unit: ``nats``, or ``times`` for a factor; empty without one.
        style, digits, log: How it is printed (``formats.Format``).
    """

    meaning: str
    unit: str = ""
    style: str = "significant"
    digits: int = 3
    log: bool = False

    @property
    def format(self) -> Format:
        """How it is printed."""
        return Format(self.style, self.digits, log=self.log)  # pyright: ignore[reportArgumentType]


class Verdict(Strict):
    """What became of a statement in a run.

    Args:
        key, document: Its key, and the name of its document's file.
        statement: The statement.
        results: The result of every comparison by its name; that of the main one is ``""``.
        quantities: What each of them measures.
        why_post_hoc: Why its test was not planned before its data existed; empty if it was.
        digest: The digest of its test.
    """

    key: str
    document: str
    statement: Statement
    results: dict[str, Result] = Field(default={})
    quantities: dict[str, Quantity] = Field(default={})
    why_post_hoc: str = ""
    digest: str = ""

    @property
    def main(self) -> Result:
        """The result of the main comparison; an undecided one without a comparison."""
        return self.results.get(MAIN, Result(reason=NO_DATA))

    @property
    def contradicted_by(self) -> list[str]:
        """The names of the comparisons that are decided, and not as the main one is."""
        if self.main.outcome == "undecided":
            return []
        decided = {name: r for name, r in self.results.items() if r.outcome != "undecided"}
        return [name for name, r in decided.items() if r.outcome != self.main.outcome]

    @property
    def word(self) -> Word:
        """The verdict in a word."""
        if not self.statement.comparisons:
            return "not testable here"
        word: Word = "mixed" if self.contradicted_by else self.main.outcome
        return ANSWERS.get(word, word) if self.statement.is_question else word

    @property
    def is_decided(self) -> bool:
        """Whether it is neither undecided nor untestable."""
        return self.word not in ("undecided", "not testable here")

    @property
    def certainty(self) -> Certainty:
        """How sure the verdict is.

        High: decided by a formula, or by a test that was fixed before its data, and no decided
        comparison disagrees. Moderate: decided, but post hoc or mixed. Low: not decided.
        """
        if not self.is_decided:
            return "low"
        return "moderate" if self.word == "mixed" or self.is_post_hoc else "high"

    @property
    def is_post_hoc(self) -> bool:
        """Whether it was measured by a test that was not planned before its data existed."""
        return bool(self.why_post_hoc) and self.has_data and not self.main.is_fact

    @property
    def has_data(self) -> bool:
        """Whether this run measured anything that it is about."""
        return any(one.n for one in self.results.values())


class Verdicts(Strict):
    """All verdicts of a run: the content of claims.json.

    Args:
        level: The confidence level of intervals.
        documents: By the names of their files.
        verdicts: In the order of the documents.
    """

    level: float
    documents: dict[str, Head]
    verdicts: list[Verdict] = Field(description="in the order of the documents")

    @property
    def words(self) -> dict[str, Word]:
        """The verdicts in a word, by the key of their statement."""
        return {one.key: one.word for one in self.verdicts}

    @property
    def by_key(self) -> dict[str, Verdict]:
        """Every verdict by the statement's key."""
        return {one.key: one for one in self.verdicts}

    @property
    def entries(self) -> list[tuple[str, str, Statement]]:
        """The name of the document, the key and the statement of every verdict."""
        return [(one.document, one.key, one.statement) for one in self.verdicts]

    @property
    def statements(self) -> dict[str, Statement]:
        """Every statement by its key."""
        return {one.key: one.statement for one in self.verdicts}

    def write(self, path: Path) -> None:
        """Write claims.json; what has its default is left out."""
        write_text(path, self.model_dump_json(indent=1, exclude_defaults=True) + "\n")

    @property
    def assertions(self) -> list[Verdict]:
        """The verdicts on what somebody asserts."""
        return [one for one in self.verdicts if not one.statement.is_question]


def read(path: Path) -> Verdicts:
    """The verdicts in a file, equal to those that were written."""
    return Verdicts.model_validate_json(path.read_text())


class StudyData(NamedTuple):
    """What a study measured.

    Args:
        tables: Its tables by name; one that is missing gives no data.
        declarations: The declarations of all of them, likewise.
        vocabulary: The values that it knows.
    """

    tables: Mapping[str, Any]
    declarations: Mapping[str, Table]
    vocabulary: Vocabulary


def judge(
    claims: Claims, studies: Mapping[str, StudyData], *, level: float, plan: Plan
) -> Verdicts:
    """Test every comparison of every statement.

    Args:
        plan: What was registered before the data existed.

    Raises:
        Explained: A comparison does not tell its models apart; with the statement's key.
    """
    verdicts = []
    for document, key, statement in claims:
        outcomes = {
            name: _find_result(
                comparison, studies, level, f"{key}{f'.also.{name}' if name else ''}"
            )
            for name, comparison in statement.comparisons.items()
        }
        verdicts.append(
            Verdict(
                key=key,
                document=document,
                statement=statement,
                results={name: one for name, (one, _) in outcomes.items()},
                quantities={name: quantity for name, (_, quantity) in outcomes.items()},
                why_post_hoc=plan.why_post_hoc(key, statement),
                digest=digest(statement),
            )
        )
    return Verdicts(
        level=level,
        documents={name: document.head for name, document in claims.documents.items()},
        verdicts=verdicts,
    )


def _find_result(
    comparison: Comparison, studies: Mapping[str, StudyData], level: float, place: str
) -> tuple[Result, Quantity]:
    """The result of a comparison, and what it measures."""
    name, _, table = comparison.measurement.table.partition(".")
    study, columns = studies[name], studies[name].declarations[table]
    parts = [columns[column] for column in columns_in(comparison.measurement.expression)]
    quantity = _quantity(comparison, columns, parts)
    if table not in study.tables:
        return Result(reason=NO_DATA), quantity
    try:
        values = sample(comparison, study.tables[table], columns, study.vocabulary)
    except Explained as e:
        raise Explained(f"{place}: {e}") from None
    is_count = all(column.role == "count" for column in parts)
    return result(comparison, values, is_count=is_count, level=level), quantity


def _quantity(comparison: Comparison, table: Table, measured: Sequence[Column]) -> Quantity:
    """A measure as its table declares it; arithmetic of columns stands for itself."""
    measure = comparison.measurement.expression
    if measure not in table.by_name or is_log(comparison, table):
        unit = "times" if is_log(comparison, table) else measured[0].unit * (len(measured) == 1)
        meaning = table[measure].meaning if measure in table.by_name else measure
        return Quantity(meaning=meaning, unit=unit)
    column = table[measure]
    form = column.format
    return Quantity(
        meaning=column.meaning,
        unit="times" if form.log else column.unit,
        style=form.style,
        digits=form.digits,
        log=form.log,
    )
