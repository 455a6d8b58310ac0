"""A card per statement: verdict, finding, readings, and how to rerun it."""

from collections.abc import Mapping, Sequence
from typing import Any

from normscope.formats import DASH, SCIENTIFIC
from normscope.pages.evidence import Evidence, kept_verdict
from normscope.pages.position import places, scale_of, share
from normscope.pages.statements import (
    decisive,
    document_name,
    estimate,
    every,
    explanations,
    has_data,
    is_fact,
    is_post_hoc,
    is_unasked,
    published,
    reach,
    shown_verdict,
    units,
)
from normscope.pages.table import Row

Fact = list[str]  # a term, and what is said about it


def cards(
    ledger: Mapping[str, Any],
    traces: Mapping[str, Mapping[str, Any]],
    evidence: Evidence | None = None,
) -> list[dict[str, Any]]:
    """The cards, in the order of the documents.

    Keys: key, figure (empty without one), statement, where, ``of`` (the key of its
    document), document and its link; verdict, shown as pages do;
    measured, the quantity with its value and interval; finding, a sentence; plot (``plot_of``);
    ``has_data``, whether this run has any for it, or it is not tested;
    readings, each with name, quote, answer, whether it has data, whether it decides, its number of
    cases, and facts;
    facts; test, code, tables and command, from which it can be rerun, or nothing for a statement
    that is not tested.

    Args:
        ledger: the contents of claims.json.
        traces: ``test``, ``tables`` and ``code`` of every statement, by key.
        evidence: the results that the project keeps, if it has any.
    """
    statements = {claim["key"]: claim["statement"] for claim in every(ledger)}
    options: list[str] = []
    if evidence is not None and evidence.is_same:
        options = ["--configfile", evidence.configuration]
    is_kept = evidence is None or evidence.is_same
    made = []
    for claim in every(ledger):
        facts = _facts(ledger, claim, statements)
        if is_unasked(claim):
            test = _without_test(claim)
        else:
            test = _tested(claim, traces[claim["key"]], options)
            facts += [*_verdict_facts(claim), *_words_of_evidence(claim, is_kept=is_kept)]
            if evidence is not None:
                facts.append(["evidence", kept_verdict(claim, evidence)])
        made.append(
            {key: claim[key] for key in ("key", "statement", "where", "verdict")}
            | {
                "of": claim["document"],
                "document": document_name(ledger, claim),
                "link": ledger["documents"][claim["document"]]["link"],
                "shown": shown_verdict(claim),
                "measured": measured(claim),
                "finding": finding(claim),
                "plot": plot_of(claim),
                "has_data": is_unasked(claim) or any(map(has_data, claim["readings"].values())),
                "facts": [fact for fact in facts if fact[1]],
            }
            | test
        )
    return made


def _tested(claim: Row, trace: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """What a card says about the test of a statement."""
    return {
        "figure": claim["figure"],
        "readings": [_reading(name, reading, claim) for name, reading in claim["readings"].items()],
        "test": trace["test"],
        "code": trace["code"],
        "tables": trace["tables"],
        "command": command(trace["tables"], options),
    }


def _without_test(claim: Row) -> dict[str, Any]:
    """What a card says of a statement in place of a test: its words, as if of a reading."""
    stated: dict[str, Any] = {"name": "stated", "quote": claim["quote"] or "", "cases": 0}
    stated |= {"decides": False, "has_data": False}
    stated |= {"answer": shown_verdict(claim), "facts": _compared(claim)}
    return {"figure": "", "readings": [stated], "test": "", "code": [], "tables": [], "command": ""}


def command(tables: Sequence[str], options: Sequence[str]) -> str:
    """The command that measures what a statement depends on."""
    parts = (name.split(".") for name in tables)
    files = [f"results/{study}/tables/{name}.csv" for study, name in parts]
    return " ".join(["snakemake", "--cores", "4", *files, *options])


def measured(claim: Row) -> str:
    """What was measured in the case on which a verdict rests; empty without a test."""
    if is_unasked(claim):
        return ""
    if claim["effect"] is None:
        readings = claim["readings"]
        value = readings[claim["reading"]]["corrected"].strip(DASH)
        named = f"{claim['quantity']}: "  # most sentences begin with it
        said = f"{named}{value.removeprefix(named) or 'no data'}"
        is_partly_known = any(map(has_data, readings.values()))
        return f"{said} ({claim['reading'].replace('_', ' ')})" if is_partly_known else said
    where = [place] if (place := decisive(claim)) else []
    if not is_fact(claim):
        where.append(units(claim))
    if is_post_hoc(claim):
        where.append("post hoc")
    places = f" ({', '.join(where)})" if where else ""
    return f"{claim['quantity']}: {estimate(claim)}{places}"


def finding(claim: Row) -> str:
    """What was measured, and what the statement needs; or what its test would take."""
    if is_unasked(claim):
        return f"What it would take: {claim['cannot_be_asked'].rstrip('.')}."
    needs = _needs(claim["readings"][claim["reading"]])
    return f"{measured(claim)}{f'; the statement needs {needs}' * bool(needs)}."


def _needs(reading: Row) -> str:
    """The values that support a reading; empty if it has no direction."""
    if reading["direction"] is None:
        return ""
    is_log = reading["scale"] == "log"
    bound = float(is_log) if reading["bound"] is None else reading["bound"]
    margin = reading["margin"] or float(is_log)
    low, high = (bound / margin, bound * margin) if is_log else (bound - margin, bound + margin)
    write = SCIENTIFIC.text
    match reading["direction"]:
        case "within":
            return f"{write(low)} to {write(high)}"
        case "greater":
            return f"more than {write(high)}"
    return f"less than {write(low)}"


def plot_of(claim: Row) -> dict[str, Any] | None:
    """The marks of all cases on the common scale, as shares of its axis; None without any.

    Keys: ``holds``, the ends of what supports the reading that decides; ``marks``, each with at,
    low, high, what it reads, and whether the verdict rests on it.
    """
    if is_unasked(claim):
        return None
    scale = scale_of(claim["readings"][claim["reading"]])
    marks = [
        {
            **{key: None if end is None else share(end) for key, end in mark._asdict().items()},
            "reads": claim["verdict"] if decides and claim["verdict"] != "depends" else reads,
            "decides": decides,
        }
        for mark, reads, decides in places(claim)
    ]
    if scale is None or not marks:
        return None
    marks.sort(key=lambda mark: mark["decides"])  # the one that decides is drawn last
    return {"holds": [share(end) for end in scale.holds], "marks": marks}


def _reading(name: str, reading: Row, claim: Row) -> dict[str, Any]:
    """A reading: its name and quote, its answer, and its test in words.

    The quantity is named where it is not that of the finding.
    """
    reasons = "; ".join(
        f"{word} {reading[word]:.6g}: {reading[f'{word}_because']}"
        for word in ("bound", "margin")
        if reading[f"{word}_because"]
    )
    verdict = f" ({reading['its_verdict']})" if reading["its_verdict"] else ""
    as_published = f"{reading['as_published']}{verdict}" if reading["as_published"] else ""
    base = reading["reach"]
    words = [
        *_compared(reading),
        ["in plain words", reading["restated"] or ""],
        ["test", _test_of(reading)],
        ["its numbers", reasons],
        ["as published", as_published],
    ]
    if base:
        test = f"that of {base.replace('_', ' ')}, of other models"
        words = [["in plain words", reading["restated"] or ""], ["test", test]]
    facts = [*words, ["measured", reading["corrected"].removeprefix(f"{claim['quantity']}: ")]]
    return {
        "name": name.replace("_", " "),
        "quote": "" if base else reading["quote"] or "",
        "answer": reading["alone"],
        "has_data": has_data(reading),
        "decides": name == claim["reading"],
        "cases": len(reading["cases"]),
        "facts": [fact for fact in facts if fact[1]],
    }


def _test_of(reading: Row) -> str:
    """The test of a reading in words, with how its cases are taken together."""
    some = "; it holds if one of its cases does" * (reading["holds_in"] == "any")
    return reading["criterion"] + some + ", and cannot fail" * (not reading["refutable"])


def _compared(quoted: Row) -> list[Fact]:
    """With what a quote was compared."""
    facts = [
        ["quote compared with", quoted["compared_with"] or ""],
        ["quote not compared", quoted["uncompared"] or ""],
    ]
    return [fact for fact in facts if fact[1]]


def _facts(ledger: Mapping[str, Any], claim: Row, statements: Mapping[str, str]) -> list[Fact]:
    """What a document says of its statement, and how it relates to others."""
    words = [published(ledger, claim) or "asserted by nobody", claim["published_number"]]
    words += ["a main claim of the document"] * claim["primary"]
    related = {"contradicts": "contradicts", "refines": "refines", "refined_by": "refined by"}
    return [
        ["published", "; ".join(filter(None, words))],
        ["authors' regime", claim["regime"] or ""],
        *(
            [title, "; ".join(f"“{statements[other]}”" for other in claim[key])]
            for key, title in related.items()
        ),
    ]


def _verdict_facts(claim: Row) -> list[Fact]:
    """What is known about a verdict."""
    return [
        ["off-label", _off_label(claim)],
        ["reach", reach(claim)],
        ["why", claim["reason"]],
        ["post hoc because", claim["post_hoc"]],
        ["p-values", _p_values(claim)],
    ]


def _words_of_evidence(claim: Row, *, is_kept: bool) -> list[Fact]:
    """Words that quote the numbers of the kept evidence, and say so in another run."""
    prefix = "" if is_kept else "in the evidence, "
    return [[term, prefix + said] for term, said in explanations(claim).items()]


def _off_label(claim: Row) -> str:
    """How tests differ from the authors' regime, with the readings if some do not."""
    differ: dict[str, list[str]] = {}
    for name, reading in claim["readings"].items():
        if reading["off_label"]:
            differ.setdefault(reading["off_label"], []).append(name.replace("_", " "))
    if claim["off_label"] and len(differ) == 1:
        return next(iter(differ))
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in differ.items())


def _p_values(claim: Row) -> str:
    """The p-values of the deciding test; empty without a test."""
    if claim["p"] is None:
        return ""
    p, corrected = (SCIENTIFIC.text(claim[key]) for key in ("p", "p_holm"))
    return f"{p}; {corrected} within the document (Holm)"
