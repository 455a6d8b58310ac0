"""The open ledger: a row and a page for every statement, and filters by what statements have."""

import json
import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from markupsafe import escape

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = json.loads((ROOT / "evidence/claims.json").read_text())
STATEMENTS = {row["key"]: row for row in [*KEPT["claims"], *KEPT["unasked"]]}


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("open_ledger")


@pytest.fixture
def pages(ledger: ModuleType) -> dict[str, str]:
    return {name: context["body"] for name, context, _ in ledger.pages()}


class Form(HTMLParser):
    """The rows of the table, the options of each filter, and controls that no label names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, dict[str, set[str]]] = {}
        self.options: dict[str, set[str]] = {}
        self.unnamed: list[str] = []
        self.label, self.select = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "tr" and "id" in given:
            values = {k.removeprefix("data-"): v for k, v in given.items() if k.startswith("data-")}
            self.rows[given["id"]] = {k: set(filter(None, v.split("|"))) for k, v in values.items()}
        elif tag == "label":
            self.label = ""
        elif tag in ("select", "input"):
            self.unnamed += [given["name"]] * (not self.label.strip())
            if tag == "select":
                self.select = given["name"]
                self.options[self.select] = set()
        elif tag == "option" and given["value"]:
            assert given["value"] not in self.options[self.select]
            self.options[self.select].add(given["value"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self.label = ""

    def handle_data(self, data: str) -> None:
        self.label += data


@pytest.fixture
def form(ledger: ModuleType) -> Form:
    return Form(ledger.front())


def test_every_statement_has_its_row_and_its_page_with_its_words(
    form: Form, pages: dict[str, str], ledger: ModuleType
):
    assert list(form.rows.keys() ^ STATEMENTS.keys()) == []
    assert pages.keys() == {f"ledger/{key}" for key in STATEMENTS}
    for key, row in STATEMENTS.items():
        page = pages[f"ledger/{key}"]
        said = [row["statement"], row["where"], row.get("cannot_be_asked"), row.get("regime")]
        said += [row.get("differs_because"), row.get("limits"), row.get("reason")]
        for reading in row.get("readings", {}).values():
            said += [reading["alone"], reading["restated"]]
            said += [reading["corrected"].removeprefix(f"{row['quantity']}: ")]
            if not reading["reach"]:
                said += [reading["quote"], reading["criterion"]]
        for words in filter(None, said):
            assert str(escape(words)) in page
        for other in [*row["contradicts"], *row["refines"], *row["refined_by"]]:
            assert f'href="{other}.html"' in page
        assert bool(re.search(r"make evidence STUDIES=&#34;[a-z]", page)) == ("study" in row)


def test_options_are_the_values_of_the_ledger(form: Form):
    for name, options in form.options.items():
        assert options == set().union(*(row[name] for row in form.rows.values())), name
    rows = STATEMENTS.values()
    assert form.options["verdict"] == {row["verdict"] for row in rows}
    assert form.options["document"] == {row["document"] for row in rows}
    assert form.options["study"] == {row["study"] for row in KEPT["claims"]}
    sizes = {f"{e['blocks']} x {e['d']}" for row in KEPT["claims"] for e in row["reach"]}
    assert {value for value in form.options["reach"] if re.match(r"\d", value)} == sizes


def test_norms_and_places_are_those_of_the_cells(form: Form):
    """As the files of the documents have them, without the names of cells."""
    for path in (ROOT / "data/claims").glob("*.yaml"):
        for key, entry in yaml.safe_load(path.read_text())["claims"].items():
            if key in form.rows:
                assert form.rows[key]["norm"] == named(entry, "arm"), key
                assert form.rows[key]["place"] == named(entry, "placement"), key


def named(node: object, column: str) -> set[str]:
    """The values of a column anywhere in an entry."""
    found: set[str] = set()
    for key, part in node.items() if isinstance(node, dict) else ():
        if key == column:
            found |= set(part if isinstance(part, list) else [part])
        else:
            found |= named(part, column)
    return found


def test_the_form_and_the_table_are_accessible(form: Form, ledger: ModuleType):
    assert form.unnamed == []
    text = ledger.front()
    assert "<caption>" in text
    assert len(re.findall("<th ", text)) == len(re.findall('<th [^>]*scope="', text))
    assert 'aria-live="polite"' in text
    assert re.search(r"<form [^>]*\bhidden>", text)  # the script shows it


def test_links_lead_somewhere(ledger: ModuleType, pages: dict[str, str], tmp_path: Path):
    checks = import_module("checks")
    others = {"index": ledger.front(), "results": '<h2 id="the-whole-ledger">', "howto/run": ""}
    for name, text in {**others, **pages}.items():
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    ledger.copy_figures(tmp_path)
    assert list(checks.dead_links(tmp_path)) == []
    for text in pages.values():
        for image in re.findall(r'<img src="([^"]*)"', text):
            assert (tmp_path / "ledger" / image).is_file()
    (tmp_path / "results.html").write_text("")
    first, *_ = checks.dead_links(tmp_path)
    assert first.endswith("links to ../results.html#the-whole-ledger")


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("b.html", False),
        ("b.html#x", False),
        ("#here", False),
        ("#", False),
        ("b.html#norm=rmsnorm", False),
        ("https://example.org/#x", False),
        ("c.html", True),
        ("c.html#norm=rmsnorm", True),
        ("b.html#y", True),
        ("#there", True),
    ],
)
def test_a_dead_link_is_found(link: str, is_dead: bool, tmp_path: Path, ledger: ModuleType):
    (tmp_path / "a.html").write_text(f'<p id="here"><a class="k" href="{link}">x</a>')
    (tmp_path / "b.html").write_text("<p id='x'>")
    assert list(import_module("checks").dead_links(tmp_path)) == (
        [f"a.html links to {link}"] if is_dead else []
    )
