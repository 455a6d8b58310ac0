"""Templates of the page, and the sources that it names."""

from dataclasses import replace

import pytest
from page_recipes import (
    REPORT,
    findings,
    manifest,
    run,
    template_text,
    templates,
    text_table,
    traces,
    verdict,
)

from normscope.errors import Explained
from normscope.pages.frame import Frame, collect
from normscope.pages.page import page
from normscope.verdicts.document import Head

TWO = Frame(
    {"level": "95%"},
    {"a": {"word": "one", "list": [{"x": 1}]}, "b": {"word": "two"}, "c": {"word": "three"}},
    {f"{s}.t": text_table(s, "x", [[f"cell of {s}"]]) for s in "ab"}
    | {"b.none": text_table("", "x")},
    {},
    {},
)


def write_template(folder, top: str, **sections: str) -> str:
    return template_text(templates(folder, top, **sections), TWO)


def test_a_section_has_the_words_and_tables_of_its_study_in_the_frames_order(tmp_path):
    top = "{{ a.word }} {{ level }}\n\n{% for s in sections %}\n{{ s }}\n\n{% endfor %}"
    text = write_template(
        tmp_path,
        top,
        b="{{ word }} {{ level }}\n\n{{ table('t') }}{% if has('none') %}not here{% endif %}",
        a="{% for one in list %}\n{{ word }} {{ one.x }}\n{% endfor %}\n\n{{ table('t') }}",
    )
    assert text.strip().splitlines() == [
        *("one 95%", "", "one 1", "", "::: {#table-a-t .table}", "a", ""),
        *("| x |", "| --- |", "| cell of a |", ":::", ""),
        *("two 95%", "", "::: {#table-b-t .table}", "b", ""),
        *("| x |", "| --- |", "| cell of b |", ":::"),
    ]  # c has no section


@pytest.mark.parametrize(
    ("top", "section", "message"),
    [
        ("{{ sections[0] }}", "x\n{{ wrod }}", r"a/section\.md, line 2: 'wrod' is undefined"),
        ("\n{{ a.wrod }}", "", r"summary\.md, line 2: .*no attribute 'wrod'"),
        ("{{ table('a.tt') }}", "", r"summary\.md, line 1: .*no table 'a\.tt'; did you mean"),
        ("{{ sections }}", "{{ table('b.t') }}", r"a/section\.md, line 1: .*no table 'b\.t'"),
        ("\n\n{% if %}", "", r"summary\.md, line 3: "),
        ("{{ level + 1 }}", "", r"summary\.md, line 1: "),
    ],
)
def test_an_unknown_name_is_an_error_with_its_file_and_line(tmp_path, top, section, message):
    with pytest.raises(Explained, match=message):
        write_template(tmp_path, top, a=section)


def test_a_word_that_would_hide_behind_a_function_is_an_error(tmp_path):
    hiding = replace(TWO, sections={"a": {"table": ["one protocol"]}})
    with pytest.raises(Explained, match=r"study a: .* functions: table"):
        template_text(templates(tmp_path, "{{ sections }}", a="{{ table }}"), hiding)


LINK = "https://example.org/a_b~c/(1)?x=1%20&y=2#z"


@pytest.fixture
def printed() -> Frame:
    other = verdict("b").model_copy(update={"document": "e"})
    documents = {"d": Head(title="On norms", by="A. Author", link=LINK)}
    documents["e"] = Head(title="Without a link")
    made = run(verdict("a"), other).model_copy(update={"documents": documents})
    given = {"findings": findings("a"), "scale": "small", "traces": traces(made, "x")}
    return collect({}, made, {}, **given)


@pytest.fixture
def text(printed: Frame, tmp_path) -> str:
    """The summary of no study."""
    return template_text(templates(tmp_path, (REPORT / "summary.md").read_text()), printed)


def test_the_page_leads_from_an_answer_to_a_statement_and_to_its_document(printed, text):
    whole = page(REPORT, text, {}, manifest())
    href = LINK.replace("&", "&amp;")
    assert f'<p><a href="{href}">On norms</a>, words' in whole
    assert "<p>Without a link, words" in whole
    order = ["By 0.250", "words words</h2>", 'id="statement-a"', "Other claims", "All claims"]
    places = [whole.index(part) for part in [*order, "Methods</h2>", "Provenance</h2>"]]
    assert places == sorted(places)
    assert '<a href="#statement-b">' in whole
