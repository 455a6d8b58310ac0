"""The open ledger: the table of all statements on the front page, and one page per statement.

The mark ``<!-- ledger -->`` in a page is replaced by the number of statements, the filters and the
table. All words and numbers are those of the evidence and of ``data/claims/``.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import lesson

from normscope.ledger.case import PLURALS
from normscope.ledger.entry import Entry, load
from normscope.ledger.frozen import read_history
from normscope.ledger.vocabulary import Vocabulary
from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.paper.cards import cards, command
from normscope.paper.disputes import disputes
from normscope.paper.statements import (
    CHANGES,
    OFF_LABEL,
    UNASKED,
    decisive,
    document_name,
    estimate,
    every,
    is_asserted,
    is_unasked,
    reach,
    shown_verdict,
)
from normscope.paper.table import Row
from normscope.paper.template import environment
from normscope.studies.sources import sources

ROOT = Path(__file__).parents[1]
MARK = "<!-- ledger -->"
FENCE = "`" * 6  # longer than any in a statement
FOLDER = "ledger"  # of the pages of statements
NOTES = (
    "why",
    "why it differs",
    "why it may differ",
    "note",
    "limits",
)  # facts that a page shows first
FORMULAS = PLURALS["formula"]  # the unit of a statement that needs no data
MODELS = "models (blocks x width)"  # a group of options
TEMPLATES = environment(ROOT / "docs", ROOT / "workflow/report", autoescape=True)
COUNTED = {  # what is said of one statement and of several with a verdict
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "depends": ("depends on how its words are read", "depend on how their words are read"),
    "undecided": ("is undecided", "are undecided"),
    "unasked": (f"{UNASKED} here", f"{UNASKED} here"),
}
FILTERS = ("document", "norm", "place", "verdict", "status", "study", "reach")
RELATED = {
    "contradicts": "It contradicts",
    "refines": "It refines",
    "refined_by": "It is refined by",
}


class Word(NamedTuple):
    """A value by which statements are filtered.

    Args:
        value: as the address of a selection has it.
        label: of its option, which belongs to a group of options if it names one.
        place: which orders options, before their labels.
    """

    value: str
    label: str
    group: str = ""
    place: tuple[int, ...] = ()


def filled(page: str) -> str:
    """A page with the mark replaced by the ledger."""
    if MARK not in page:
        return page
    return page.replace(MARK, f"{opening()}\n\n{FENCE}{{raw}} html\n{front()}{FENCE}")


def front() -> str:
    """The filters and the table, for the front page."""
    return _macros().front(statements(), filters())


def pages() -> Iterator[tuple[str, dict[str, str], str]]:
    """Name, contents and template of the page of every statement, as Sphinx collects pages."""
    for one in statements():
        name = f"{FOLDER}/{one['key']}"
        yield name, {"title": one["statement"], "body": _macros().page(one)}, "page.html"


def copy_figures(out: Path) -> None:
    """Copy the kept figures that show statements to a built site."""
    folder = out / FOLDER / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name in {one["figure"] for one in statements() if one["drawn"]}:
        shutil.copy(_drawing(name, "svg"), folder)


def opening() -> str:
    """A sentence with the number of statements, and one with their verdicts."""
    ledger = kept()
    rows = every(ledger)
    asserted = [claim for claim in rows if is_asserted(ledger, claim)]
    documents = {claim["document"] for claim in asserted}
    given = Counter(claim["verdict"] for claim in rows)
    verdicts = [f"{n} {COUNTED[v][n > 1]}" for v in COUNTED if (n := given[v])]
    off_label = sum(claim["off_label"] for claim in rows)
    statuses = Counter(claim["status"] for claim in rows if claim["status"])
    limits = [f"{n} {status}" for status, n in statuses.most_common()]
    tested = f"; {off_label} {'are' if off_label > 1 else 'is'} {OFF_LABEL}" * bool(off_label)
    return (
        f"The ledger has {len(rows)} statements: {len(asserted)} that {len(documents)} documents "
        f"make, and {len(rows) - len(asserted)} questions of this project. {_joined(verdicts)}. Of "
        f"the verdicts, {_joined(limits).replace(' ', ' are ', 1)}{tested}."
    )


def _joined(parts: Sequence[str]) -> str:
    """Parts of a sentence, joined by commas and "and"."""
    return ", and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def filters() -> list[dict[str, Any]]:
    """Name, label and grouped options of each filter: the values that statements have."""
    made = []
    for name in FILTERS:
        groups: dict[str, list[Word]] = {}
        found = {word for one in statements() for word in one["words"][name]}
        for word in sorted(found, key=lambda word: (word.group, word.place, word.label.lower())):
            groups.setdefault(word.group, []).append(word)
        made.append({"name": name, "label": name.capitalize(), "groups": groups})
    return made


@cache
def kept() -> Mapping[str, Any]:
    """The ledger of the evidence."""
    return json.loads(lesson.result("claims.json").read_text())


@cache
def statements() -> list[dict[str, Any]]:
    """The card of every statement, with what its page and its row show in addition.

    Keys, in addition to those of a card: title of its document; words, by filter; verdict_words,
    status_words, quantity, estimate, n, reach and place, the reading and the case of the
    estimate; notes, why the verdict is as it is; cases, the
    rows of its readings; related statements; drawn, title and caption of its figure if the
    evidence has it; and commands, each with what it does.
    """
    ledger, studies = kept(), lesson.config().studies
    claims = load(sorted((ROOT / "data/claims").glob("*.yaml")))
    vocabularies = {name: study.vocabulary() for name, study in studies.items()}
    traces = sources(claims, studies)
    related = _related(ledger, traces)
    made = []
    for claim, card in zip(every(ledger), cards(ledger, traces), strict=True):
        added: dict[str, Any] = {
            "title": ledger["documents"][claim["document"]]["title"],
            "words": _words(claim, card, claims.entries.get(claim["key"]), vocabularies),
            "related": related[claim["key"]],
            **{"quantity": "", "estimate": "", "place": "", "n": "", "reach": "", "drawn": None},
            **{"cases": [], "commands": []},
        }
        if not is_unasked(claim):
            added |= _tested(claim, traces[claim["key"]]["tables"])
        facts = {
            term: said for term, said in card["facts"] if term.replace(" ", "_") not in RELATED
        }
        notes = [(term, facts.pop(term)) for term in NOTES if term in facts]
        facts_of_page = [*facts.items(), *_origin(claim)]
        made.append({**card, **added, "notes": notes, "facts": facts_of_page})
        verdict, *status = (word.label for word in _verdict(claim))
        made[-1] |= {"verdict_words": verdict, "status_words": status}
    return made


def _verdict(claim: Row) -> list[Word]:
    """The verdict, and what limits it."""
    words = [claim["status"]] * bool(claim["status"])
    words += [OFF_LABEL] * claim["off_label"] + ["quote not compared"] * bool(claim["uncompared"])
    shown = UNASKED if is_unasked(claim) else claim["verdict"]
    place = list(COUNTED).index(claim["verdict"])
    return [Word(claim["verdict"], shown, place=(place,)), *(Word(word, word) for word in words)]


def _words(
    claim: Row, card: Mapping[str, Any], entry: Entry | None, vocabularies: Mapping[str, Vocabulary]
) -> dict[str, list[Word]]:
    """The values of a statement by the names of the filters."""
    verdict, *status = _verdict(claim)
    study = claim.get("study")
    return {
        "document": [Word(card["of"], card["document"])],
        **_cells(entry, vocabularies),
        "verdict": [verdict],
        "status": status,
        "study": [Word(study, study)] if study else [],
        "reach": _extents(claim),
    }


def _cells(entry: Entry | None, vocabularies: Mapping[str, Vocabulary]) -> dict[str, list[Word]]:
    """The norms and placements that the contrasts of a statement name."""
    contrasts = [r.contrast for r in entry.readings.values() if r.contrast] if entry else []
    cells = [
        cell
        for contrast in contrasts
        for side in contrast.sides
        for cell in vocabularies[contrast.table.partition(".")[0]].cells(side)
    ]
    arms, places = ({cell.get(column) for cell in cells} for column in ("arm", "placement"))
    registry = enumerate(ARMS.items())
    return {
        "norm": [Word(arm, row.label, place=(i,)) for i, (arm, row) in registry if arm in arms],
        "place": [
            Word(name, label, place=(i,))
            for i, (name, label) in enumerate(PLACEMENTS.items())
            if name in places
        ],
    }


def _extents(claim: Row) -> list[Word]:
    """The sizes and texts of the models that a verdict is about, and how its effect changes."""
    extents = claim.get("reach", ())
    sizes = [(extent["blocks"], extent["d"]) for extent in extents]
    words = [Word(size := f"{b} x {d}", size, MODELS, (b, d)) for b, d in sizes]
    words += [Word(extent["text"], extent["text"], "text") for extent in extents]
    change: str = claim.get("with_size", "").partition(" between ")[0]
    if change:
        words.append(Word(change, CHANGES.get(change, change), "effect with size"))
    return list(dict.fromkeys(words))


def _tested(claim: Row, tables: Sequence[str]) -> dict[str, Any]:
    """What a tested statement has in addition to its card."""
    return {
        "quantity": claim["quantity"],
        "estimate": "" if claim["effect"] is None else estimate(claim),
        "place": decisive(claim),
        "n": _n(claim),
        "reach": reach(claim),
        "cases": list(_cases(claim)),
        "drawn": _figure(claim["figure"]),
        "commands": _commands(tables),
    }


def _n(case: Row) -> str:
    """How many models or prompts a case has; a formula counts nothing."""
    return f"{case['n']} {case['n_unit']}" if case["n"] and case["n_unit"] != FORMULAS else ""


def _cases(claim: Row) -> Iterator[dict[str, Any]]:
    """A row for each case of each reading."""
    for name, reading in claim["readings"].items():
        for case, values in reading["cases"].items():
            models = (
                f"{e['blocks']} x {e['d']}, {e['steps']:,} steps, {e['text']}"
                for e in values["extents"]
            )
            effect = "" if values["effect"] is None else estimate(values)
            cells = (values["reads"], _n(values), effect, "; ".join(models))
            yield {
                "reading": ": ".join(filter(None, (name.replace("_", " "), case))),
                "cells": [cell or "–" for cell in cells],
                "decides": (name, case) == (claim["reading"], claim["case"]),
            }


def _origin(claim: Row) -> list[list[str]]:
    """When the test was fixed, and its seeds."""
    if is_unasked(claim):
        return []
    frozen = _freezes().get(claim["key"]) if claim["status"] == "confirmatory" else None
    facts = [
        ["status", claim["status"] + f"; its test was frozen in commit {frozen}" * bool(frozen)],
        ["seeds", _runs(claim["seeds"])],
        ["digest of the test", claim["digest"]],
    ]
    return [fact for fact in facts if fact[1]]


@cache
def _freezes() -> dict[str, str | None]:
    """The commit that froze the test of each confirmatory verdict, by statement."""
    lines = read_history(lesson.result("history.jsonl"))
    return {line.statement: line.frozen for line in lines if line.status == "confirmatory"}


def _runs(numbers: Sequence[int]) -> str:
    """Numbers in ascending order, with consecutive ones as a range: 1 to 3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


def _related(
    ledger: Mapping[str, Any], traces: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[dict[str, str]]]:
    """The statements that each one contradicts or refines, and what a dispute came to."""
    rows = {claim["key"]: claim for claim in every(ledger)}
    outcomes = {
        frozenset(dispute["statements"]): words["outcome"]
        for dispute, words in zip(ledger["disputes"], disputes(ledger, traces), strict=True)
    }
    return {
        key: [
            {
                "how": how,
                "key": other,
                "statement": rows[other]["statement"],
                "document": document_name(ledger, rows[other]),
                "shown": shown_verdict(rows[other]),
                "outcome": outcomes.get(frozenset((key, other)), ""),
            }
            for relation, how in RELATED.items()
            for other in claim[relation]
        ]
        for key, claim in rows.items()
    }


def _drawing(name: str, kind: str) -> Path:
    """A file of a figure of the evidence, which may lack it."""
    return lesson.result("claims.json").parent / "figures" / f"{name}.{kind}"


def _figure(name: str) -> dict[str, str] | None:
    """Title and caption of a figure; None if it is not kept."""
    if not _drawing(name, "svg").is_file():
        return None
    caption = _drawing(name, "txt").read_text().strip()
    return {"title": caption.partition(". ")[0], "caption": caption}


def _commands(tables: Sequence[str]) -> list[tuple[str, str]]:
    """What repeats a statement, from its tables to the whole ledger."""
    run = json.loads(lesson.result("run.json").read_text())["configuration"]
    studies = " ".join(dict.fromkeys(table.partition(".")[0] for table in tables))
    return [
        (
            "Train the models, and write the tables that the statement reads:",
            command(tables, ["--configfile", run]),
        ),
        (
            "Also keep these results as evidence, and judge the ledger again:",
            f'make evidence STUDIES="{studies}"',
        ),
        (
            "Make the results of all studies, and judge the ledger:",
            f"snakemake --cores 4 results/paper/claims.json --configfile {run}",
        ),
    ]


@cache
def _macros() -> Any:
    return TEMPLATES.get_template("ledger.html.j2").module
