"""The verdicts of a run as tables, counts and numbers of the paper."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from normscope.formats import INTEGER, SCIENTIFIC
from normscope.pages.table import Column, Number, PageTable, Quantity, field, tabulate
from normscope.statistics.power import MOST
from normscope.verdicts.document import MAIN
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import CERTAINTIES, WORDS, Verdict, Verdicts
from normscope.verdicts.verdict import Quantity as Measured


def effect(result: Result, measured: Measured) -> str:
    """An effect with its interval and unit."""
    whole = Quantity(result.effect, result.low, result.high)
    text = Column("", measured.format).text(result.effect if math.isnan(result.low) else whole)
    return f"{text} {measured.unit}".strip()


def effect_of(verdict: Verdict, name: str = MAIN) -> str:
    """The effect of a comparison; empty without data."""
    result = verdict.results.get(name)
    return effect(result, verdict.quantities[name]) if result and result.n else ""


def why(verdict: Verdict) -> str:
    """Why the verdict is as it is: what was expected, p, what would decide it, what disagrees."""
    main, others = verdict.main, verdict.contradicted_by
    if not main.n:
        return main.reason
    said = f"expected: {verdict.statement.comparisons[MAIN].expect}"
    if main.outcome == "undecided":
        few = main.enough <= MOST
        enough = f"about n = {float(f'{main.enough:.2g}'):.0f}" if few else f"no n below {MOST:,}"
        return f"{said}; {main.reason}" + f"; {enough} would decide it" * bool(main.enough)
    if not math.isnan(main.p):
        said += f", p = {SCIENTIFIC.text(main.p)}"
    if not others:
        return said
    other = verdict.results[others[0]].outcome
    return f"{main.outcome} in the main comparison ({said}); {other} for {', '.join(others)}"


def claims_table(verdicts: Verdicts, evidence: Verdicts | None = None) -> PageTable:
    """One row per statement, the surest first.

    Args:
        verdicts: Those that are shown.
        evidence: Those of the evidence, which get a column.
    """
    documents, words = verdicts.documents, evidence.words if evidence else {}
    fields = [
        field("claim", lambda row: row["one"].statement.says),
        field("source", lambda row: documents[row["one"].document].name),
        field("result", lambda row: row["one"].word),
        field("effect", lambda row: effect_of(row["one"]) or None),
        field("certainty", lambda row: row["one"].certainty),
        field("evidence", lambda row: words.get(row["one"].key)),
    ][: None if evidence else -1]
    order = sorted(
        verdicts.verdicts,
        key=lambda one: (CERTAINTIES.index(one.certainty), not one.statement.comparisons),
    )
    return tabulate("All claims", [{"one": one} for one in order], fields)


def scoreboard(runs: Mapping[str, Verdicts]) -> PageTable:
    """How many assertions came out as claimed or not, by what decides them, by run."""
    cells = []
    for name, of in runs.items():
        for is_fact, how in ((True, "formulas and single cases"), (False, "trained models")):
            given = Counter(one.word for one in of.assertions if one.main.is_fact == is_fact)
            cells.append((f"{name}, by {how}", *(given[word] for word in WORDS), given.total()))
    columns = (Column("assertions"), *(Column(word, INTEGER) for word in (*WORDS, "all")))
    return PageTable("How the claims fared", columns, tuple(cells))


def totals(verdicts: Verdicts) -> dict[str, Any]:
    """Counts for sentences: of assertions, by verdict, and of what decides them."""
    counted = verdicts.assertions
    given = Counter(one.word for one in counted)
    results = [result for one in verdicts.verdicts for result in one.results.values()]
    return {
        "assertions": len(counted),
        "documents": len({one.document for one in counted}),
        "words": {word: given[word] for word in WORDS if given[word]},
        "questions": len(verdicts.verdicts) - len(counted),
        "comparisons": sum(not math.isnan(result.p) for result in results),
    }


def numbers(verdicts: Verdicts) -> dict[str, Number]:
    """Counts of assertions by verdict, for LaTeX."""
    given = Counter(f"claims {one.word}" for one in verdicts.assertions)
    counts = {"claims": given.total()} | {
        f"claims {word}": given[f"claims {word}"] for word in WORDS
    }
    return {name: Number(count, INTEGER) for name, count in counts.items()}


def by_statement(verdicts: Verdicts) -> dict[str, Any]:
    """Counts of verdicts, and the verdict of every statement, for DVC."""
    each = {one.key: one.word for one in verdicts.verdicts if one.statement.comparisons}
    return {"count": dict(sorted(Counter(each.values()).items())), "statement": each}
