"""A small frame, whose texts may be hostile, and the pages that are made of it."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from processes import ROOT

from normscope.config import Config, load
from normscope.formats import INTEGER, decimals
from normscope.pages.cards import cards
from normscope.pages.frame import Figure, Frame
from normscope.pages.page import page
from normscope.pages.statements import ledger_table, tally_table
from normscope.pages.table import Column, Number, PageTable, Quantity
from normscope.pages.template import environment, fill, summary_text
from normscope.pilot import read_project

REPORT = ROOT / "workflow" / "report"
HOSTILE = [  # a browser or Markdown would read them as more than text
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></title></script><svg onload=alert(1)>",
    "![x](https://example.org/x.png)",
    "[x](javascript:alert(1))",
    "# a_b_c 5% A&B &lt; ]]> {{ 7 * 7 }} {% raw %} \\` $x$ [[x]]",
    "::: {.card} - x # y | 1. z",
]
HOSTILE_TEX = [  # TeX or Typst would
    "_ % & # $ { } ~ ^ \\ < > |",
    r"\input{/etc/passwd} \write18{touch owned} \end{document}",
    "\"straight\" 'single' ``back'' “curly” ‘one’ ?` !` -- --- ,, << >>",
    "−0.5 – 1.43e-107 naïve Ångström Łódź ÿ α Ω ς µ ϡ ² ≤",
    "模型 🙂 \u200b\x07 العربية",
    "[1, 2] * & \\\\ [0pt] <% if %> << name >> <# x #>",
    "W" * 120,
    '#panic() #read("/etc/passwd") *b* _e_ `c` @x <y> $z$ //',
]
SUMMARY = """# The title {{ title }}

An opening of {{ main.words }}.

{{ table("tally") }}

## The ledger of claims

{{ forest }}

{{ table("ledger") }}

{% for card in cards %}
{% include "statement.md" %}

{% endfor %}
{% for section in sections %}
{{ section }}

{% endfor %}
## Figures

{{ figures }}

The end.
"""
SECTION = """## Losses of {{ words }}

{{ words }} begins a line with `code`, {{ steps }} steps.

- one
- two

```
a block
```

{{ table("loss") }}

### Empty

{% if has("empty") %}
{{ table("empty") }}
{% else %}
Nothing of {{ words }}.
{% endif %}
"""
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="30pt" height="15pt" viewBox="0 0 30 15"/>'


def config() -> Config:
    """config.yaml."""
    return load(read_project(REPORT.parents[1]))


def shown(table: PageTable) -> list[dict[str, str]]:
    """The rows of a table, cells by their titles."""
    return [dict(zip(table.headings, row, strict=True)) for row in table.texts()]


def text_table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> PageTable:
    """A table of text columns."""
    return PageTable(title, tuple(map(Column, titles)), tuple(map(tuple, rows)))


CASE = {"effect": 0.25, "low": 0.125, "high": 0.5, "n": 6, "n_unit": "seeds"}


def reading(**changes: Any) -> dict[str, Any]:
    """A reading of claims.json: the quantity lies above 0."""
    return {
        **{
            "reach": None,
            "quote": None,
            "compared_with": None,
            "uncompared": None,
            "restated": None,
            "off_label": None,
            "quantity": "difference",
            "criterion": "it is above 0",
        },
        **{"test": "t", "direction": "greater", "scale": "linear", "unit": "model"},
        **{"holds_in": "all", "refutable": True},
        **{"bound": 0.0, "bound_because": None, "margin": None, "margin_because": None},
        **{"as_published": "was", "its_verdict": "", "corrected": "is", "alone": "holds"},
        "cases": {"": CASE | {"reads": "holds", "extents": []}},
    } | changes


RELATED = {"regime": None, "refines": [], "refined_by": [], "off_label": False, "uncompared": False}


def unasked(**changes: Any) -> dict[str, Any]:
    """A statement of claims.json that cannot be asked."""
    return {
        **{"key": "u", "document": "d", "where": "page 2", "primary": False, "contradicts": []},
        **{"statement": "Norms help giants.", "quote": "they do", "compared_with": "page 2"},
        **{"published_number": None, "published_verdict": "holds"},
        **{"verdict": "unasked", "cannot_be_asked": "A thousand GPUs."},
        **RELATED,
    } | changes


def claim(**changes: Any) -> dict[str, Any]:
    """A statement of claims.json: tested, and held as published."""
    return {
        **{"key": "a", "study": "main", "document": "d", "where": "page 1", "primary": False},
        **{"statement": "Norms help.", "quantity": "difference", "figure": "loss"},
        **{"published_number": "1.5", "published_verdict": "holds", "verdict": "holds"},
        **{"post_hoc": "", "digest": "0", "contradicts": []},
        **{"reach": [], "with_size": "", "changing": []},
        **RELATED,
        **{
            "reason": "",
            "differs_because": "",
            "limits": "",
            "reading": "stated",
            "case": "",
            "readings": {"stated": reading()},
        },
        **CASE,
        **{"p": 0.03125, "p_holm": 0.0625},
    } | changes


def ledger(*rows: dict[str, Any], author: str | None = "A. Author") -> dict[str, Any]:
    """claims.json of ``claim`` and ``unasked``, with a document and questions of this project."""
    claims, others = ([c for c in rows if ("readings" in c) is has] for has in (True, False))
    documents = {
        "d": {"title": "On norms", "author": author, "link": None, "asserts": True},
        "questions": {"title": "Questions", "author": None, "link": None, "asserts": False},
    }
    tests = sum(c["p"] is not None for c in claims)
    return {
        **{"level": 0.95, "tests": tests, "documents": documents, "disputes": []},
        **{"claims": claims, "unasked": others},
    }


def traces(stated: dict[str, Any], words: str) -> dict[str, dict[str, Any]]:
    """traces.json."""
    place = {"test": "claims.yaml:1-2", "tables": ["main.runs"], "code": [words, "a.py:3-4"]}
    return {one["key"]: place for one in stated["claims"]}


def frame(*words: str, names: tuple[str, ...] = ("loss", "final_norm", "forest")) -> Frame:
    """Statements of every verdict, a table of numbers, and figures.

    Args:
        words: the first stands in all texts; each of them is a statement and a row of a table.
        names: of the figures.
    """
    words = words or ("words",)
    first = words[0]
    untested = {"p": None, "p_holm": None}
    untested |= {"effect": None, "low": None, "high": None}
    stated = reading(criterion=first, quote=first, corrected=first)
    claims = [
        claim(verdict="fails", figure=names[0], readings={"stated": stated}, refined_by=["u"]),
        unasked(statement=first, quote=first, cannot_be_asked=first, refines=["a"]),
        claim(key="b", verdict="undecided", reason=first, quantity=first, **untested),
        claim(key="c", document="questions", figure=first),
        *(
            claim(key=f"d{i}", statement=w, verdict="depends", figure=names[1 % len(names)])
            for i, w in enumerate(words)
        ),
    ]
    stated = ledger(*claims, author=first)
    columns = (Column("arm"), Column("loss", decimals()), Column(first, decimals()))
    rows = [(w, 2.5, f"[{i}, {w[:9]}]") for i, w in enumerate(words)]
    tables = {
        "tally": tally_table(stated),
        "ledger": ledger_table(stated),
        "main.loss": PageTable(
            f"Losses {first}",
            columns,
            (("LayerNorm", 1.9, Quantity(None, 1.892, 1.907)), *rows),
        ),
        "main.empty": text_table("Empty", ["arm"]),
    }
    figures = {name: Figure(f"Title {first}", f"Caption {first}") for name in names}
    numbers = {"layernorm pre loss": Number(1.9, decimals()), "missing": Number(None, INTEGER)}
    sections = {"main": {"words": first, "steps": 2000}}
    made = cards(stated, traces(stated, first))
    return Frame({"title": "of a page"}, sections, tables, figures, numbers, made)


def templates(folder: Path, summary: str = SUMMARY, **sections: str) -> Path:
    """A folder of templates; sections by their studies, else one of the study main."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.md").write_text(summary)
    shutil.copy(REPORT / "statement.md", folder)
    for study, text in (sections or {"main": SECTION}).items():
        (folder / study).mkdir(exist_ok=True)
        (folder / study / "section.md").write_text(text)
    return folder


def template_text(folder: Path, printed: Frame) -> str:
    """The summary by templates that all lie in one folder."""
    return summary_text(folder, folder, printed)


def opening(folder: Path, printed: Frame, end: str) -> str:
    """The project's summary up to the words ``end``, on one line."""
    (folder / "opening.md").write_text((REPORT / "summary.md").read_text().partition(end)[0])
    words = {**printed.words, "table": "[{}]".format, "forest": "F"}
    return " ".join(fill(environment(folder), "opening.md", words).split())


def manifest(words: str = "words") -> dict[str, Any]:
    """manifest.json."""
    probes = {words: {"missing": None}, "absent": {"missing": "no file"}}
    return {
        "config": {},
        "config_sha256": "c0ffee",
        "dataset": {"origin": words, "sha256": {words: "da7a"}},
        "texts": {words: {"origin": words, "sha256": {words: "7e87"}}},
        "device": words,
        "packages": {"torch": words, words: "1"},
        "python": "3.11.7",
        "studies": {
            "main": {"models": {words: {}, "b": {}}, "probes": {}},
            "pretrained": {"models": {}, "probes": probes},
        },
        "sources_sha256": {words: "abc123", "scripts/page.py": "def456"},
    }


def made(folder: Path, *words: str) -> str:
    """The page of ``frame``; its templates are written into a folder."""
    printed = frame(*words)
    text = template_text(templates(folder), printed)
    return page(REPORT, text, dict.fromkeys(printed.figures, SVG), manifest(*words))
