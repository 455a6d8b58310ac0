"""The verdicts of a run as tables, counts and numbers of the paper."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from normscope.formats import INTEGER, SCIENTIFIC
from normscope.pages.table import Column, Number, PageTable, Quantity, derived, tabulate
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import POST_HOC, SMALLER, WORDS, Verdict, Verdicts, Word
from normscope.verdicts.verdict import Quantity as Measured

FACT, TRAINED = "by formulas and single cases", "by trained models"


def words_of(verdict: Verdict) -> str:
    """The verdict with its marks: ``as claimed (post hoc, smaller than theirs)``."""
    marks = ", ".join(verdict.marks)
    return f"{verdict.word} ({marks})" if marks else verdict.word


def style_of(word: Word) -> str:
    """The name of the style that colors a verdict."""
    return {"yes": "claimed", "as claimed": "claimed", "no": "opposite"}.get(word, word.split()[0])


def effect(result: Result, measured: Measured) -> str:
    """An effect with its interval and unit."""
    column = Column("effect", measured.format)
    text = (
        column.text(result.effect)
        if _has_no(result.low)
        else column.text(Quantity(result.effect, result.low, result.high))
    )
    return f"{text} {measured.unit}".strip()


def _has_no(value: float) -> bool:
    return value != value  # noqa: PLR0124 - NaN


def finding(verdict: Verdict, name: str = "") -> str:
    """What a comparison found, in a line; what is lacking without data."""
    result = verdict.results.get(name)
    if result is None:
        return ""
    if not result.n:
        return result.reason
    parts = [effect(result, verdict.quantities[name])]
    if len(result.means) > 1:
        column = Column("", verdict.quantities[name].format)
        parts.append(f"({' against '.join(map(column.text, result.means))})")
    words = f"{' '.join(parts)}, n = {result.n}"
    if not _has_no(result.p):
        expected = verdict.statement.comparisons[name].expect
        words += f"; expected: {expected}, p = {SCIENTIFIC.text(result.p)}"
    return words


def lines(verdicts: Verdicts) -> dict[str, str]:
    """The verdict on every statement and what was found, each in a line, by the statement's key."""
    return {one.key: f"{words_of(one)}: {finding(one)}" for one in verdicts.verdicts}


def models_of(comparison: Comparison) -> str:
    """The models of a comparison in words: its sides, and what they share."""
    shared = ", ".join(f"{name} {_words(value)}" for name, value in comparison.models.items())
    return "; ".join(filter(None, [comparison.compare, shared]))


def _words(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def why(verdict: Verdict) -> str:
    """Why a statement is undecided, mixed, or not testable here, and its note."""
    parts = [verdict.main.reason if verdict.statement.comparisons else ""]
    if verdict.contradicted_by:
        parts.append(f"otherwise: {', '.join(verdict.contradicted_by)}")
    return "; ".join(filter(None, [*parts, verdict.statement.note]))


def claims_table(verdicts: Verdicts) -> PageTable:
    """One row per statement: what is claimed, by whom, and what was found."""
    documents = verdicts.documents

    def has_test(cell: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda row: cell(row["one"].main) if row["one"].main.n else None

    fields = [
        derived("statement", lambda row: row["one"].statement.says),
        derived("source", lambda row: documents[row["one"].document].name),
        derived("verdict", lambda row: words_of(row["one"])),
        derived("found", lambda row: finding(row["one"]) or None),
        derived("n", has_test(lambda result: result.n), INTEGER),
        derived("why", lambda row: why(row["one"]) or None),
    ]
    return tabulate("All statements", [{"one": one} for one in verdicts.verdicts], fields)


def scoreboard(runs: Mapping[str, Verdicts]) -> PageTable:
    """How many assertions came out as claimed or not, by what decides them, by run."""
    cells = []
    for name, of in runs.items():
        facts = {one.key for one in of.assertions if one.main.is_fact}
        groups = {
            f"{name}, {FACT}": [one for one in of.assertions if one.key in facts],
            f"{name}, {TRAINED}": [one for one in of.assertions if one.key not in facts],
        }
        for title, group in groups.items():
            given = Counter(one.word for one in group)
            cells.append((title, *(given[word] for word in WORDS), sum(given.values())))
    columns = (Column("assertions"), *(Column(word, INTEGER) for word in (*WORDS, "all")))
    return PageTable("How the claims fared", columns, tuple(cells))


def dispute_table(verdicts: Verdicts) -> PageTable:
    """One row per pair of statements that cannot both hold."""
    by_key = verdicts.by_key
    columns = ("statement", "verdict", "contradicts", "its verdict")
    rows = [
        tuple(
            text
            for one in (by_key[key] for key in pair)
            for text in (_sentence(verdicts, one), words_of(one))
        )
        for pair in verdicts.disputes
    ]
    return PageTable("Statements that cannot both hold", tuple(map(Column, columns)), tuple(rows))


def _sentence(verdicts: Verdicts, one: Verdict) -> str:
    return f"{one.statement.says} ({verdicts.documents[one.document].name})"


def totals(verdicts: Verdicts) -> dict[str, Any]:
    """Counts for sentences: of assertions by verdict, of questions by answer, and by mark."""
    counted = verdicts.assertions
    questions = [one for one in verdicts.verdicts if one.statement.is_question]
    results = [result for one in verdicts.verdicts for result in one.results.values()]
    tested = [result for result in results if not _has_no(result.p)]
    return {
        "assertions": len(counted),
        "documents": len({one.document for one in counted}),
        "words": _by_word(counted),
        "questions": len(questions),
        "answers": _by_word(questions),
        "post_hoc": sum(POST_HOC in one.marks for one in counted if one.is_decided),
        "smaller": sum(SMALLER in one.marks for one in counted),
        "decided": sum(one.is_decided for one in counted),
        "facts": sum(one.main.is_fact for one in counted),
        "comparisons": len(tested),
    }


def _by_word(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return dict(Counter(one.word for one in verdicts).most_common())


def numbers(verdicts: Verdicts) -> dict[str, Number]:
    """Counts of assertions by verdict, for LaTeX."""
    given = Counter(one.word for one in verdicts.assertions)
    counts = {f"claims {word}": given[word] for word in WORDS}
    counts |= {"claims": len(verdicts.assertions)}
    return {name: Number(count, INTEGER) for name, count in counts.items()}


def by_statement(verdicts: Verdicts) -> dict[str, Any]:
    """Counts of verdicts, and the verdict of every statement, for DVC."""
    each = {one.key: one.word for one in verdicts.verdicts if one.statement.comparisons}
    given = Counter(each.values())
    return {"count": dict(sorted(given.items())), "statement": each}
