"""A card per statement: verdict, finding, comparisons, and how to rerun it."""

from collections.abc import Mapping, Sequence
from typing import Any

from normscope.formats import DASH
from normscope.pages.evidence import Evidence, kept_verdict
from normscope.pages.statements import finding, models_of, style_of, words_of
from normscope.verdicts.document import MAIN
from normscope.verdicts.verdict import Verdict, Verdicts

Fact = list[str]  # a term, and what is said about it


def cards(
    verdicts: Verdicts,
    traces: Mapping[str, Mapping[str, Any]],
    evidence: Evidence | None = None,
) -> list[dict[str, Any]]:
    """The cards, in the order of the documents.

    Keys: key, figure, statement, where, ``of`` (the key of its document), document and its link;
    verdict, the style that colors it, and ``shown``, its words; finding, a line; ``has_data``;
    quote; facts; ``comparisons``, each with name, outcome, and facts; ``lacking``, the names of
    those without data; test, code and command, from which it can be rerun.

    Args:
        verdicts: The content of claims.json.
        traces: ``test``, ``tables`` and ``code`` of every statement, by key.
        evidence: The results that the project keeps, if it has any.
    """
    options: list[str] = []
    if evidence is not None and evidence.is_same:
        options = ["--configfile", evidence.configuration]
    return [
        _card(one, verdicts, traces.get(one.key, {}), options, evidence)
        for one in verdicts.verdicts
    ]


def _card(
    one: Verdict,
    verdicts: Verdicts,
    trace: Mapping[str, Any],
    options: Sequence[str],
    evidence: Evidence | None,
) -> dict[str, Any]:
    statement, document = one.statement, verdicts.documents[one.document]
    with_data = {name: result for name, result in one.results.items() if result.n}
    tables = trace.get("tables", [])
    facts = [
        ["theirs", statement.theirs],
        ["ours", statement.ours],
        ["undecided because", one.main.reason],
        ["otherwise", ", ".join(one.contradicted_by)],
        ["note", statement.note],
        ["post hoc because", one.why_post_hoc if "post hoc" in one.marks else ""],
        ["quotes compared with", document.checked if statement.quote else ""],
        ["evidence", kept_verdict(one, evidence) if evidence else ""],
    ]
    return {
        "key": one.key,
        "of": one.document,
        "statement": statement.says,
        "where": statement.where,
        "document": document.name,
        "link": document.link,
        "figure": statement.figure,
        "verdict": style_of(one.word),
        "shown": words_of(one),
        "finding": finding(one) or "no comparison",
        "has_data": bool(with_data) or not statement.comparisons,
        "quote": statement.quote or "",
        "facts": [fact for fact in facts if fact[1]],
        "comparisons": [_comparison(one, name) for name in with_data],
        "lacking": [name or "the main comparison" for name in one.results if name not in with_data],
        "test": trace.get("test", ""),
        "code": trace.get("code", []),
        "command": command(tables, options) if tables else "",
    }


def _comparison(one: Verdict, name: str) -> dict[str, Any]:
    comparison = one.statement.comparisons[name]
    facts = [
        ["measured", one.quantities[name].meaning],
        ["models", models_of(comparison) or DASH],
        ["expected", comparison.expect],
        ["found", finding(one, name)],
    ]
    outcome = one.results[name].outcome
    return {"name": name or "main", "is_main": name == MAIN, "outcome": outcome, "facts": facts}


def command(tables: Sequence[str], options: Sequence[str]) -> str:
    """The command that measures what a statement depends on."""
    parts = (name.split(".") for name in tables)
    files = [f"results/{study}/tables/{name}.csv" for study, name in parts]
    return " ".join(["snakemake", "--cores", "4", *files, *options])
