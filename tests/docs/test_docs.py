"""The tutorial's pages: numbers come from evidence, and a stale sentence fails the build."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from normscope.config import Config, load
from normscope.errors import Explained
from normscope.nn.arms import ARMS, LABELS
from normscope.pilot import read_project
from normscope.verdicts.verdict import read

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)


def config() -> Config:
    return load(read_project(ROOT))


def table_file(folder: Path, name: str) -> Path:
    study, _, table = name.partition(".")
    return folder / study / f"{table}.csv"


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the evidence, which the pages read and tests change."""
    copy = shutil.copytree(ROOT / "evidence", tmp_path / "evidence")
    monkeypatch.setenv("NORMSCOPE_EVIDENCE", str(copy))
    return copy


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module(name)


@pytest.fixture
def lesson(evidence: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module("lesson", monkeypatch)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module("checks", monkeypatch)


def change(evidence: Path, name: str, column: str, placement: str, factor: float) -> None:
    """Scale a column of one placement's networks."""
    path = table_file(evidence, f"depth.{name}")
    table = pd.read_csv(path)
    table.loc[table["placement"] == placement, column] *= factor
    table.to_csv(path, index=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pages_have_no_typed_numbers_and_no_cells_that_do_not_run(page: Path, checks: ModuleType):
    text = page.read_text()
    assert checks.may_have_numbers(text) or checks.digits(text) == []
    assert "remove-cell" not in text


def test_the_lesson_and_what_runs_may_have_no_typed_numbers(checks: ModuleType):
    may = {p.relative_to(DOCS).as_posix() for p in PAGES if checks.may_have_numbers(p.read_text())}
    assert {page for page in may if not page.startswith("reference/")} == {"results.md"}
    assert not checks.may_have_numbers("---\na: b\n---\ntyped_numbers: here\n")


def test_pages_of_keys_show_those_of_the_code(monkeypatch: pytest.MonkeyPatch):
    keys = module("keys", monkeypatch)
    _, outermost, *_ = keys.configuration().split("\n## ")
    assert all(f"| `{key}` |" in outermost for key in config().model_dump())
    assert all(f"`{arm}`" in keys.arms() for arm in ARMS)
    assert "| jacobian | `feedback` | `backprop`, `fa`, `dfa` |" in keys.vocabulary()
    for page in PAGES:
        assert "<!-- keys:" not in keys.filled(page.read_text())


@pytest.mark.parametrize(
    "typed",
    [
        "The loss is 2.8 nats.",
        "It has\n12 blocks.",
        "## The first 10 blocks",
        "| 3 | {eval}`x` |",
        "About $0.66$ per block.",
        "In 2020 it was 5, as [Xiong et al. 2020](x) say.",
        "```python\n1\n```\nthen 2",
        "L05b and GPT-3",
        "{eval}`3.75`",
        '{eval}`"17 %"`',
        "`1.23`",
        "```{note}\nThe loss is 2.8.\n```",
    ],
)
def test_a_typed_number_is_found(typed: str, checks: ModuleType):
    assert len(checks.digits(f"# Title\n\n{typed}\n")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "---\nkernelspec:\n  name: python3\n---\n# Title",
        "```{code-cell} ipython3\nx = 1\n```",
        "````\n```\n1\n```\n````",
        "Now {eval}`lesson.rate('x', depth=12)` and `x[3]`, ``a`1``.",
        r"$\frac{1}{2}$ and $x_1$",
        "$$ y = \\sqrt{d - 1} $$",
        "[Ba et al. 2016](https://arxiv.org/abs/1607.06450), [Zhang & Sennrich 2019](x)",
        "GPT-2, and L05 at <https://example.org/1>",
        "1. first\n\n2. second",
        "<!-- 1 -->",
    ],
)
def test_other_digits_are_let_through(source: str, checks: ModuleType):
    assert checks.digits(source) == []


def test_a_changed_verdict_is_stale(lesson: ModuleType, evidence: Path):
    for key, verdict in lesson.claims().items():
        lesson.relies_on(key, verdict.word)
    assert lesson.claims()["stays"].results[""].outcome == "as claimed"
    ledger = json.loads((evidence / "claims.json").read_text())
    (stays,) = (one for one in ledger["verdicts"] if one["key"] == "stays")
    stays["results"] = {"": {"reason": "p = 0.5", "p": 0.5, "n": 4}}
    (evidence / "claims.json").write_text(json.dumps(ledger))
    lesson._ledger.cache_clear()
    message = "'stays' is 'mixed', but the evidence: 'undecided'"
    with pytest.raises(lesson.StaleProse, match=message):
        lesson.relies_on("stays", "mixed")


def test_a_comparison_with_another_outcome_is_stale(lesson: ModuleType):
    for name, result in lesson.claims()["stays"].results.items():
        lesson.relies_on("stays", result.outcome, name)
        other = "opposite" if result.outcome == "as claimed" else "as claimed"
        with pytest.raises(
            lesson.StaleProse, match=re.escape(f"{name or 'main'!r}, is {other!r}, but")
        ):
            lesson.relies_on("stays", other, name)


def test_a_changed_order_is_stale(lesson: ModuleType, evidence: Path):
    def prose() -> None:
        pre = lesson.rate("gradient_kept", "pre", 12, residual=False)
        none = lesson.rate("gradient_kept", "none", 12, residual=False, init="xavier")
        lesson.relies_on_order(none, pre)

    prose()
    for column in ("mean", "low", "high"):
        change(evidence, "by_shape", column, "none", 1e42)
    lesson._read.cache_clear()
    with pytest.raises(lesson.StaleProse, match="is less than"):
        prose()


def test_a_missing_result_says_what_makes_it(lesson: ModuleType, evidence: Path):
    table_file(evidence, "depth.trainability").unlink()
    with pytest.raises(lesson.MissingResult, match=r"evidence/depth/trainability\.csv is missing"):
        lesson.table("depth.trainability")


@pytest.mark.parametrize(
    ("name", "content", "url"),
    [
        ("a.html", '<a href="https://example.org">x</a><img src="a.svg">', ""),
        (
            "a.html",
            '<script src="https://cdn.example.org/x.js"></script>',
            "https://cdn.example.org/x.js",
        ),
        (
            "a.html",
            '<link rel="stylesheet" href="//fonts.example.org/f.css">',
            "//fonts.example.org/f.css",
        ),
        ("a.html", '<p style="background: url(http://a.org/x.png)">', "http://a.org/x.png"),
        ("a.css", "@import 'https://a.org/a.css'; p { src: url(b.woff) }", "https://a.org/a.css"),
    ],
)
def test_what_a_site_loads_from_a_network_is_found(
    name: str, content: str, url: str, tmp_path: Path, checks: ModuleType
):
    (tmp_path / name).write_text(content)
    assert checks.loaded(tmp_path) == ([f"{name} loads {url}"] if url else [])


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("b.html", False),
        ("b.html#x", False),
        ("#here", False),
        ("#", False),
        ("https://example.org/#x", False),
        ("c.html", True),
        ("b.html#y", True),
        ("#there", True),
    ],
)
def test_a_dead_link_is_found(link: str, is_dead: bool, tmp_path: Path, checks: ModuleType):
    (tmp_path / "a.html").write_text(f'<p id="here"><a class="k" href="{link}">x</a>')
    (tmp_path / "b.html").write_text("<p id='x'>")
    assert list(checks.dead_links(tmp_path)) == ([f"a.html links to {link}"] if is_dead else [])


PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---
# Title

```{{code-cell}} ipython3
:tags: [remove-input]
import lesson
lesson.relies_on("stays", "{answer}")
```

It is {said}, $x^2$.
"""


@pytest.mark.parametrize(
    ("answer", "said", "message"),
    [
        ("", "{eval}`lesson.rate('gradient_kept', 'pre', 12).alone`", ""),
        ("opposite", "so", "prose says that 'stays' is 'opposite', but the evidence: "),
        ("", "1.2", "index.md:14: It is 1.2"),
    ],
)
def test_a_build_fails_for_what_is_stale(
    answer: str, said: str, message: str, lesson: ModuleType, tmp_path: Path
):
    (tmp_path / "pages/_static").mkdir(parents=True)
    (tmp_path / "pages/_static/tutorial.css").write_text("")
    answer = answer or lesson.claims()["stays"].word
    (tmp_path / "pages/index.md").write_text(PAGE.format(answer=answer, said=said))
    options = ["-W", "-n", "-q", "-E", "-b", "html", "-c", str(DOCS), "-d", str(tmp_path / "trees")]
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(tmp_path / "pages"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (build.returncode == 0) == (not message)
    assert message in build.stderr
    if not message:
        html = (tmp_path / "html/index.html").read_text()
        assert f">{lesson.rate('gradient_kept', 'pre', 12).alone}<" in html
        assert "<math" in html


EVIDENCE = ROOT / "evidence"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        import_module("whole_pages").write(folder)
        yield folder


def test_every_statement_has_an_anchor_with_its_verdict_and_its_comparisons(site: Path):
    page = BeautifulSoup((site / "summary.html").read_text(), "html.parser")
    verdicts = read(EVIDENCE / "claims.json").verdicts
    assert len(page.select("[id^=statement-]")) == len(verdicts)
    for verdict in verdicts:
        (card,) = page.select(f"details:has(#statement-{verdict.key})")
        assert " ".join(verdict.statement.says.split()) in " ".join(card.text.split())
        assert [word.text for word in card.select(".verdict")] == [verdict.word]
        rows = [row.find_all("td") for row in card.select(".scroll tbody tr")]
        shown = [(cells[0].text, cells[-1].text) for cells in rows]
        measured = {name: one for name, one in verdict.results.items() if one.n}
        assert shown == [(name or "main", one.outcome) for name, one in measured.items()]
    figures = {f"figure-{path.stem}" for path in (EVIDENCE / "figures").glob("*.svg")}
    assert {str(figure["id"]) for figure in page.select("figure")} == figures


def test_every_kept_norm_has_its_card(site: Path):
    card = load(read_project(ROOT, ROOT / "config/gallery.yaml")).card
    assert card is not None
    links = import_module("whole_pages").filled("<!-- cards -->")
    assert {path.stem for path in (site / "card").glob("*.html")} == {*card.norm}
    for norm in card.norm:
        assert f'href="card/{norm}.html"' in links
        assert f"<title>{LABELS[norm]}: a card" in (site / f"card/{norm}.html").read_text()


def test_the_files_load_nothing_and_their_links_lead_somewhere(site: Path):
    checks = import_module("checks")
    assert checks.loaded(site) == []
    assert list(checks.dead_links(site)) == []


def test_evidence_without_cards_says_how_to_make_them(tmp_path: Path, monkeypatch):
    shutil.copy(EVIDENCE / "claims.json", tmp_path)
    monkeypatch.setenv("NORMSCOPE_EVIDENCE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    with pytest.raises(Explained, match="run `make gallery`"):
        import_module("whole_pages").filled("<!-- cards -->")
