"""The answers to the questions of data/findings.yaml, with the numbers of a run."""

import math
from collections.abc import Collection
from typing import Any

from normscope.pages.statements import effect
from normscope.pages.table import Column
from normscope.verdicts.findings import Answer, Findings
from normscope.verdicts.verdict import Verdict, Verdicts

FIRST = 3  # questions whose first answers open the page


def sentence(answer: Answer, verdict: Verdict) -> str:
    """An answer with what was measured, and its n, if not one row decided it."""
    result, quantity = verdict.results[answer.comparison], verdict.quantities[answer.comparison]
    means = map(Column("", quantity.format).text, (*result.means, math.nan, math.nan))
    said = answer.says.format(*means, effect=effect(result, quantity))
    return said if result.is_fact else f"{said.removesuffix('.')} (n = {result.n})."


def certainty(answer: Answer, verdict: Verdict) -> str:
    """That of the verdict; moderate if the comparison of the answer is decided, and it is not."""
    is_decided = answer.outcome != "undecided"
    return "moderate" if is_decided and verdict.certainty == "low" else verdict.certainty


def is_supported(answer: Answer, verdict: Verdict | None) -> bool:
    """Whether a verdict has the outcome that an answer needs, from data."""
    result = verdict.results.get(answer.comparison) if verdict else None
    return result is not None and result.n > 0 and result.outcome == answer.outcome


def words(
    findings: Findings, run: Verdicts, evidence: Verdicts | None, figures: Collection[str]
) -> dict[str, Any]:
    """The words of the questions: ``questions``, and ``opening``, the first answers of some.

    A question has name, asks, ``found`` (its answer in short; empty if a sentence has no support),
    figure, and answers, each with ``says``, ``is_kept`` (whether it is the evidence's) and
    ``here``, what this run found instead of it. So has each of its documents, with title, figure,
    ``did``, and ``document``, the name that its cards have.

    Args:
        figures: Names of those that the page has.
    """
    questions = []
    for name, question in findings.questions.items():
        answers = [_answer(one, run, evidence) for one in question.answers]
        headline = question.found if all(one["says"] for one in answers) else ""
        words = {"name": name, "asks": question.asks, "figure": question.figure}
        documents = []
        for one in question.published:
            head = run.documents[run.by_key[one.corrected.statement].document]
            figure = one.figure if one.figure in figures else ""
            about = {"document": head.name, "title": head.title, "did": one.did, "figure": figure}
            documents.append(about | _answer(one.corrected, run, evidence))
        questions.append({**words, "found": headline, "answers": answers, "documents": documents})
    return {"questions": questions, "opening": [one["answers"][0] for one in questions[:FIRST]]}


def _answer(answer: Answer, run: Verdicts, evidence: Verdicts | None) -> dict[str, Any]:
    """An answer of a run; the evidence's, if the run does not decide otherwise."""
    one = run.by_key.get(answer.statement)
    if one and is_supported(answer, one):
        return {"says": sentence(answer, one), "is_kept": False, "here": ""}
    result, here = one.results.get(answer.comparison) if one else None, ""
    if one and result and result.n:
        measured = effect(result, one.quantities[answer.comparison])
        here = f"{one.statement.says} {measured}, n = {result.n}: {result.outcome}"
    is_open = result is None or not result.n or result.outcome == "undecided"
    other = evidence.by_key.get(answer.statement) if evidence and is_open else None
    is_kept = is_supported(answer, other)
    says = sentence(answer, other) if other and is_kept else ""
    return {"says": says, "is_kept": is_kept, "here": here}
