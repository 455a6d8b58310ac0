"""Functions for the lesson's pages: values from the evidence, and checks on the prose."""

import html
import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.config import Config, load
from normscope.formats import SCIENTIFIC
from normscope.nn.recipe import PLACEMENTS
from normscope.pages.cards import cards
from normscope.pilot import read_project
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.tables import INITS
from normscope.verdicts import document
from normscope.verdicts.document import Statement
from normscope.verdicts.verdict import Verdict, Verdicts, read

ROOT = Path(__file__).parents[1]
MAIN = document.MAIN
EVIDENCE = "NORMSCOPE_EVIDENCE"  # overrides the directory evidence/
DOCUMENT = "tutorial"  # the document that the lesson tests
SUPERSCRIPT = str.maketrans("+-0123456789", "\u207a\u207b⁰¹²³⁴⁵⁶⁷⁸⁹")


class MissingResult(Exception):
    """The evidence lacks something that a page shows."""


class StaleProse(Exception):
    """A sentence no longer agrees with the evidence."""


def _evidence() -> Path:
    return Path(os.environ.get(EVIDENCE, ROOT / "evidence"))


def result(name: str) -> Path:
    """A file of the evidence.

    Raises:
        MissingResult: If the file is missing. The message explains how to keep it.
    """
    path = _evidence() / name
    if not path.is_file():
        raise MissingResult(
            f"{path} is missing: name it in docs/shown.yaml, and run `make evidence`"
        )
    return path


@cache
def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


def table(name: str) -> pd.DataFrame:
    """A table of the evidence by name, ``study.table``, such as ``depth.rates``."""
    study, _, file = name.partition(".")
    return _read(result(f"{study}/{file}.csv"))


@cache
def config() -> Config:
    """The project's configuration, with the part on depth that the evidence was made with."""
    made = json.loads(result("manifest.json").read_text())["config"]
    return load(read_project(ROOT) | {"depth": made["depth"]})


def grid() -> Depth:
    """The part of the configuration on depth."""
    return config().depth


def claims() -> dict[str, Verdict]:
    """The verdicts on the tutorial's statements by key."""
    return {one.key: one for one in _ledger(_evidence()).verdicts}


def statement(key: str) -> Statement:
    """A statement of the tutorial, as it was tested."""
    return claims()[key].statement


@cache
def _ledger(folder: Path) -> Verdicts:
    """The part of claims.json that is about the tutorial."""
    ledger = read(folder / result("claims.json").name)
    of_tutorial = [one for one in ledger.verdicts if one.document == DOCUMENT]
    return ledger.model_copy(update={"verdicts": of_tutorial})


def records(table: pd.DataFrame) -> list[Any]:
    """The rows of a table, with columns as attributes."""
    return list(table.itertuples())


def pretty(text: str) -> str:
    """A text with powers of ten in the usual notation."""
    return re.sub(
        r"(?<=\d)e([+-]\d+)",
        lambda m: f" × 10{str(int(m[1])).translate(SUPERSCRIPT)}",
        text,
    )


def text(value: float) -> str:
    """A number with 3 significant digits."""
    return pretty(SCIENTIFIC.text(value))


@dataclass(frozen=True)
class Measured:
    """A mean over models with its interval. Prose prints it with the interval, or ``alone``."""

    mean: float
    low: float
    high: float

    def __repr__(self) -> str:
        if math.isnan(self.low):
            return self.alone
        return f"{self.alone} [{text(self.low)}, {text(self.high)}]"

    @property
    def alone(self) -> str:
        return text(self.mean)


def row(name: str, **where: Any) -> Any:
    """The one row with these values, with columns as attributes.

    Raises:
        LookupError: If there is not exactly one such row.
    """
    rows = table(name)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    if len(rows) != 1:
        raise LookupError(f"{name} has {len(rows)} rows with {where}; there must be one")
    return records(rows)[0]


def _network(placement: str, depth: int, residual: bool, init: str, state: str) -> dict[str, Any]:
    arm = "none" if placement == "none" else "layernorm"
    shape = {"arm": arm, "placement": placement, "residual": residual, "init": init}
    return shape | {"depth": depth, "state": state}


def rate(
    measure: str,
    placement: str,
    depth: int,
    *,
    residual: bool = True,
    init: str = "gpt2",
    state: str = "start",
    block: int | None = None,
) -> Measured:
    """A measure of networks from ``depth.by_shape``, or for one block from ``depth.by_block``."""
    network = _network(placement, depth, residual, init, state)
    name, where = ("by_shape", {}) if block is None else ("by_block", {"block": block})
    r = row(f"depth.{name}", measure=measure, **network, **where)
    return Measured(r.mean, r.low, r.high)


def at_block(measure: str, placement: str, depth: int, block: int, **network: Any) -> Measured:
    """``rate`` for one block."""
    return rate(measure, placement, depth, block=block, **network)


def measured_loss(r: Any) -> Measured:
    """The loss in a row of ``depth.trainability``."""
    return Measured(r.mean, r.low, r.high)


def depths(*, state: str = "start", residual: bool = True, init: str = "gpt2") -> list[int]:
    """The numbers of blocks for which pre-norm with LayerNorm was measured."""
    pre = table("depth.by_shape").query("arm == 'layernorm' and placement == 'pre'")
    is_asked = (pre["state"] == state) & (pre["residual"] == residual) & (pre["init"] == init)
    return sorted(set(pre.loc[is_asked, "depth"]))


def relies_on(key: str, word: str, *comparisons: str) -> None:
    """Check that a statement, or each of some comparisons, came out as prose says.

    Args:
        key: The key of the statement.
        word: The verdict in a word, or the outcome of a comparison: as claimed, opposite, or
            undecided.
        comparisons: Names of comparisons, which are the keys of ``also``; ``MAIN`` is the main one.
            Without any, prose relies on the verdict.

    Raises:
        StaleProse: It came out differently.
    """
    verdict = claims()[key]
    found = {repr(key): verdict.word}
    if comparisons:
        found = {f"{key!r}, {n or 'main'!r},": verdict.results[n].outcome for n in comparisons}
    for name, now in found.items():
        if now != word:
            raise StaleProse(f"prose says that {name} is {word!r}, but the evidence: {now!r}")


def _measured(value: "float | Measured") -> Measured:
    return value if isinstance(value, Measured) else Measured(value, math.nan, math.nan)


def relies_on_order(*values: "float | Measured") -> None:
    """Check that each value is less than the next, without overlap of their intervals, if any.

    Raises:
        StaleProse: If this is not the case.
    """
    for one, other in pairwise(map(_measured, values)):
        high = one.mean if math.isnan(one.high) else one.high
        low = other.mean if math.isnan(other.low) else other.low
        if not high < low:
            raise StaleProse(f"prose says that {one} is less than {other}, but it is not")


def relies_on_close(one: "float | Measured", other: "float | Measured", within: float) -> None:
    """Check that two values are approximately equal.

    Args:
        one, other: The numbers.
        within: The allowed difference of their means, as a share of the larger one.

    Raises:
        StaleProse: If they differ by more.
    """
    a, b = _measured(one).mean, _measured(other).mean
    if not abs(a - b) <= within * max(abs(a), abs(b)):
        raise StaleProse(f"prose says that {one} is about {other}, but it is not")


@dataclass(frozen=True)
class Html:
    """Markup that a page shows unchanged."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup


def _html(cells: pd.DataFrame, style: str = "measured") -> Html:
    """A table whose cells are text."""
    markup = cells.to_html(index=False, border=0, classes=["docutils", style])
    return Html(f'<div class="table-wrapper docutils container">{markup}</div>')


def by_depth(
    measure: str,
    *,
    residual: bool = True,
    init: str = "gpt2",
    state: str = "start",
    placements: Iterable[str] = tuple(PLACEMENTS),
) -> Html:
    """One row per placement, one column per number of blocks."""
    shapes = table("depth.by_shape")
    shapes = shapes[(shapes["measure"] == measure) & (shapes["residual"] == residual)]
    shapes = shapes[(shapes["init"] == init) & (shapes["state"] == state)]
    shapes = shapes[shapes["arm"].isin(["layernorm", "none"])]
    rows = []
    for placement in placements:
        line = {"placement": PLACEMENTS[placement]}
        for r in records(shapes[shapes["placement"] == placement].sort_values("depth")):
            line[f"{r.depth} blocks"] = repr(
                rate(measure, placement, r.depth, residual=residual, init=init, state=state)
            )
        if len(line) > 1:
            rows.append(line)
    return _html(pd.DataFrame(rows).fillna("–"))


def losses() -> Html:
    """One row per network, one column per learning rate and warm-up."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for r in records(table("depth.trainability")):
        bare = "" if r.residual else ", no residual"
        start = f", {INITS[r.init]}" if INITS[r.init] else ""
        line = rows.setdefault((f"{PLACEMENTS[r.placement]}{bare}{start}", f"{r.depth}"), {})
        warm = f"{r.warmup_steps} steps" if r.warmup_steps else "none"
        failed = f", {r.failed} of {r.n} failed" if r.failed else ""
        line[f"rate {r.learning_rate:g}, warm-up {warm}"] = f"{measured_loss(r)}{failed}"
    cells = pd.DataFrame(
        [{"network": name, "blocks": depth} | line for (name, depth), line in rows.items()]
    )
    return _html(cells.fillna("–"))


def columns(name: str, shown: dict[str, str]) -> Html:
    """Some columns of a table, with titles for readers."""
    return _html(table(name)[list(shown)].rename(columns=shown).map(_cell))


def _cell(value: Any) -> str:
    """A number with 3 significant digits, or unchanged if it has fewer."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "–"
    return f"{value:g}" if value == round(value, 3) else text(value)


def _list(facts: Iterable[list[str]]) -> str:
    return "".join(
        f"<dt>{html.escape(term.capitalize())}</dt><dd>{html.escape(pretty(words))}</dd>"
        for term, words in facts
    )


def _box(card: dict[str, Any]) -> str:
    """A statement of the tutorial with its comparisons: expected, found, and outcome."""
    quote = [["as published", f"\u201c{card['quote']}\u201d, {card['where']}"]]
    known = [[name, card[name]] for name in ("theirs", "ours", "why", "note") if card[name]]
    compared = [
        [f"{name}: {outcome}", f"expected {expected}; {effect}, n = {n}"]
        for name, _, expected, effect, n, outcome in card["rows"]
    ]
    return (
        f'<details class="claim claim-{card["verdict"]}" id="{card["key"]}"><summary>'
        f'<span class="claim-verdict">{html.escape(card["shown"])}</span> '
        f"{html.escape(card['claim'])}</summary>"
        f"<dl>{_list(quote + known + compared)}</dl></details>"
    )


def verdicts(*keys: str) -> Html:
    """The named statements, or all of them, as collapsible boxes."""
    boxes = {card["key"]: _box(card) for card in cards(_ledger(_evidence()), {})}
    return Html("".join(boxes[key] for key in keys or boxes))


def claim_table() -> Html:
    """One row per statement, in short form."""
    rows = [
        {
            "statement": one.statement.says,
            "as published": one.statement.theirs or "–",
            "verdict": one.word,
        }
        for one in claims().values()
    ]
    return _html(pd.DataFrame(rows), "words")


def count(word: str) -> int:
    """The number of statements with a verdict."""
    return sum(one.word == word for one in claims().values())
