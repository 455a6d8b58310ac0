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
from normscope.pages.statements import claims_table, scoreboard
from normscope.pages.table import Column, Number, PageTable, Quantity
from normscope.pages.template import summary_text
from normscope.pilot import read_project
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.document import Head, Statement
from normscope.verdicts.findings import Findings
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import Quantity as Measured
from normscope.verdicts.verdict import Verdict, Verdicts

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

{{ table("scoreboard") }}

{% for card in cards %}
{% include "statement.md" %}

{% endfor %}
## All claims

{{ table("claims") }}

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


def rows_of(table: PageTable) -> list[dict[str, str]]:
    """The rows of a table, cells by their titles."""
    return [dict(zip(table.headings, row, strict=True)) for row in table.texts()]


def text_table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> PageTable:
    """A table of text columns."""
    return PageTable(title, tuple(map(Column, titles)), tuple(map(tuple, rows)))


CLAIMED = Result(outcome="as claimed", effect=0.25, low=0.125, high=0.5, n=12, p=1e-4)
FACT = Result(outcome="opposite", effect=0.5, n=3)
NONE = Result(reason="no data")
TEST = Comparison(measure="main.runs.loss", compare="rmsnorm - layernorm", expect="below 0")


def verdict(key: str, main: Result = CLAIMED, words: str = "words", **changes: Any) -> Verdict:
    """A statement that is tested twice; ``words``, which may be hostile, stand in all texts."""
    fields: dict[str, Any] = {
        **{"says": "Norms help.", "quote": words, "where": words, "theirs": words, "ours": None},
        **{"note": words, "figure": "loss", "comparisons": {"": TEST, words: TEST}},
    }
    statement = Statement.model_construct(**fields | changes)  # validation refuses hostile texts
    quantity = Measured(meaning=words, unit="nats", style="decimals")
    return Verdict(
        key=key,
        document="d",
        statement=statement,
        results=dict.fromkeys(statement.comparisons, NONE) | {"": main},
        quantities=dict.fromkeys(statement.comparisons, quantity),
    )


def run(*verdicts: Verdict, by: str = "A. Author") -> Verdicts:
    """claims.json of some verdicts."""
    head = Head(title="On norms", by=by, checked="all")
    return Verdicts(level=0.95, documents={"d": head}, verdicts=list(verdicts))


def findings(statement: str) -> Findings:
    """A question with one answer, which its statement gives."""
    answer = {"says": "By {effect}.", "statement": statement, "outcome": "as claimed"}
    question = {"asks": "words", "found": "words", "figure": "loss", "answers": [answer]}
    return Findings.model_validate({"questions": {"why": {**question, "statements": [statement]}}})


def traces(verdicts: Verdicts, words: str) -> dict[str, dict[str, Any]]:
    """traces.json."""
    place = {"test": "claims.yaml:1-2", "tables": ["main.runs"], "code": [words, "a.py:3-4"]}
    place["models"] = {"": words}
    return {one.key: place for one in verdicts.verdicts if one.statement.comparisons}


def frame(*words: str, names: tuple[str, ...] = ("loss", "final_norm")) -> Frame:
    """Statements of several verdicts, a table of numbers, and figures.

    Args:
        words: the first stands in all texts; each of them is a statement and a row of a table.
        names: of the figures.
    """
    words = words or ("words",)
    first = words[0]
    made = run(
        verdict("a", words=first, figure=names[0]),
        verdict("u", NONE, first, comparisons={}, figure=""),
        verdict("b", NONE, first),
        *(verdict(f"d{i}", FACT, w, says=w) for i, w in enumerate(words)),
        by=first,
    )
    columns = (Column("arm"), Column("loss", decimals()), Column(first, decimals()))
    rows = [(w, 2.5, f"[{i}, {w[:9]}]") for i, w in enumerate(words)]
    tables = {
        "scoreboard": scoreboard({"this run": made}),
        "claims": claims_table(made),
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
    shown = cards(made, traces(made, first))
    return Frame({"title": "of a page"}, sections, tables, figures, numbers, shown)


def templates(folder: Path, summary: str = SUMMARY, **sections: str) -> Path:
    """A folder of templates; sections by their studies, else one of the study main."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.md").write_text(summary)
    for name in ("statement.md", "answer.md"):
        shutil.copy(REPORT / name, folder)
    for study, text in (sections or {"main": SECTION}).items():
        (folder / study).mkdir(exist_ok=True)
        (folder / study / "section.md").write_text(text)
    return folder


def template_text(folder: Path, printed: Frame) -> str:
    """The summary by templates that all lie in one folder."""
    return summary_text(folder, folder, printed)


def manifest(words: str = "words") -> dict[str, Any]:
    """manifest.json."""
    return {
        "config": {},
        "config_sha256": "c0ffee",
        "dataset": {"origin": words},
        "device": words,
        "packages": {"torch": words, words: "1"},
        "python": "3.11.7",
        "studies": {"main": {"models": {words: {}, "b": {}}}},
    }


def make_page(folder: Path, *words: str) -> str:
    """The page of ``frame``; its templates are written into a folder."""
    printed = frame(*words)
    text = template_text(templates(folder), printed)
    return page(REPORT, text, dict.fromkeys(printed.figures, SVG), manifest(*words))
