"""A card per statement: its result, the words of its document, its comparisons, and a rerun."""

from collections.abc import Collection, Mapping
from typing import Any

from normscope.formats import DASH
from normscope.pages.statements import effect_of, why
from normscope.verdicts.findings import Findings
from normscope.verdicts.verdict import Verdict, Verdicts


def cards(
    verdicts: Verdicts,
    traces: Mapping[str, Mapping[str, Any]],
    findings: Findings | None = None,
    kept: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The cards, in the order of the verdicts.

    Among their keys are ``of``, the name of the question; ``verdict``, the style that colors it;
    ``shown``, its word; ``is_kept``, whether it is the evidence's; ``rows``, the comparisons with
    data: name, models, expectation, effect, n and outcome; ``lacking``, the names of the others.

    Args:
        verdicts: Those that are shown.
        traces: ``test``, ``tables``, ``models`` and ``code`` of every statement, by key.
        findings: The questions, if statements are shown by question.
        kept: The keys of the verdicts that are the evidence's.
    """
    made = []
    for one in verdicts.verdicts:
        others = findings.contradicted_by(one.key) if findings else []
        known = verdicts.statements
        made.append(
            {
                **_card(one, verdicts, traces.get(one.key, {})),
                "of": findings.of_statements.get(one.key, "") if findings else "",
                "is_kept": one.key in kept,
                "contradicts": [{"key": key, "claim": known[key].says} for key in others],
            }
        )
    return made


def _card(one: Verdict, verdicts: Verdicts, trace: Mapping[str, Any]) -> dict[str, Any]:
    statement, document = one.statement, verdicts.documents[one.document]
    models, tables = trace.get("models", {}), trace.get("tables", [])
    with_data = [name for name, result in one.results.items() if result.n]
    return {
        "key": one.key,
        "claim": statement.says,
        "document": document.name,
        "title": document.title,
        "link": document.link,
        "where": statement.where,
        "checked": document.checked if statement.quote else "",
        "figure": statement.figure,
        "verdict": one.word.replace(" ", "-"),
        "shown": one.word,
        "effect": effect_of(one),
        "n": one.main.n,
        "certainty": one.certainty,
        "why": why(one) if statement.comparisons else "",
        "post_hoc": one.why_post_hoc if one.is_post_hoc else "",
        "quote": statement.quote or "",
        "theirs": statement.theirs or DASH,
        "ours": statement.ours or ("the same" if statement.comparisons else DASH),
        "note": statement.note or "",
        "measured": list(dict.fromkeys(one.quantities[name].meaning for name in with_data)),
        "rows": [
            [
                *(name or "main", models.get(name, ""), statement.comparisons[name].expect),
                *(effect_of(one, name), str(one.results[name].n), one.results[name].outcome),
            ]
            for name in with_data
        ],
        "lacking": [name or "main" for name in one.results if name not in with_data],
        "test": trace.get("test", ""),
        "code": trace.get("code", []),
        "command": " ".join(["snakemake", "--cores", "4", *map(_file, tables)]),
    }


def _file(table: str) -> str:
    study, name = table.split(".")
    return f"results/{study}/tables/{name}.csv"
