"""The summary's templates: words and tables of their study, and errors for unknown names."""

import pytest
from markdown_it import MarkdownIt
from page_recipes import (
    HOSTILE,
    claim,
    frame,
    ledger,
    template_text,
    templates,
    text_table,
    traces,
)

from normscope.errors import Explained
from normscope.paper.blocks import blocks
from normscope.paper.frame import Frame, collect
from normscope.paper.markdown import summary
from normscope.paper.section import Section
from normscope.studies.folder import FOLDER

TWO = Frame(
    {"level": "95%"},
    {"a": {"word": "one", "list": [{"x": 1}]}, "b": {"word": "two"}, "c": {"word": "three"}},
    {f"{s}.t": text_table(s, "x", [[f"cell of {s}"]]) for s in "ab"}
    | {"b.none": text_table("", "x")},
    {},
    {},
)


def written(folder, top: str, **sections: str) -> str:
    return summary(template_text(templates(folder, top, **sections), TWO), TWO)


def test_a_section_has_the_words_and_tables_of_its_study_in_the_frames_order(tmp_path):
    top = "{{ a.word }} {{ level }}\n\n{% for s in sections %}\n{{ s }}\n\n{% endfor %}"
    text = written(
        tmp_path,
        top,
        b="{{ word }} {{ level }}\n\n{{ table('t') }}{% if has('none') %}not here{% endif %}",
        a="{% for one in list %}\n{{ word }} {{ one.x }}\n{% endfor %}\n\n{{ table('t') }}",
    )
    assert text.strip().splitlines() == [
        *("one 95%", "", "one 1", "", "| x |", "| --- |", "| cell of a |"),
        *("", "two 95%", "", "| x |", "| --- |", "| cell of b |"),
    ]  # c has no section


@pytest.mark.parametrize(
    ("top", "section", "message"),
    [
        ("{{ sections[0] }}", "x\n{{ wrod }}", r"a/section\.md, line 2: .*'wrod'.*; did you mean"),
        ("\n{{ a.wrod }}", "", r"summary\.md, line 2: .*'wrod'; did you mean word"),
        ("{{ table('a.tt') }}", "", r"summary\.md, line 1: .*no table 'a\.tt'; did you mean"),
        ("{{ sections }}", "{{ table('b.t') }}", r"a/section\.md, line 1: .*no table 'b\.t'"),
        ("\n\n{% if %}", "", r"summary\.md, line 3: "),
        ("{{ word }}", "", "'word' is undefined"),
        ("{{ level.x }}", "", "has no attribute 'x'"),
        ("{{ level + 1 }}", "", r"summary\.md, line 1: "),
    ],
)
def test_what_is_not_there_is_one_error_with_its_file_its_line_and_a_way_out(
    tmp_path, top, section, message
):
    with pytest.raises(Explained, match=message):
        written(tmp_path, top, a=section)


def test_a_missing_summary_is_named(tmp_path):
    with pytest.raises(Explained, match=r"summary\.md is missing among the templates"):
        template_text(tmp_path, TWO)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_text_in_the_summary(tmp_path, text):
    """They bring no block, no link, no HTML and no table that the template does not have."""
    plain, hostile = (
        blocks(template_text(templates(tmp_path / w[:1], summary_of(w)), frame(w)))
        for w in ("words", text)
    )
    assert [(b.kind, b.table) for b in hostile] == [(b.kind, b.table) for b in plain]
    assert " ".join(text.replace("\ue000", "\ufffd").split()) in hostile[1].words


def summary_of(_: str) -> str:
    return "# x\n\n{{ main.words }}\n\n{{ table('ledger') }}\n\n{{ figures }}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("> quoted", r"line 1 .* blockquote_open; write it as"),
        ("| a |\n| --- |\n| b |", r"table_open; .* hand it over as a table"),
        ("see {{ table('a.t') }} here", "must be a separate paragraph"),
        ("- {{ table('a.t') }}", "must be a separate paragraph"),
        ("{{ table('a.t') }}\n\n{{ table('a.t') }}", r"a\.t stands twice"),
        ("{{ figures }}\n\n{{ figures }}", "figures stands twice"),
    ],
)
def test_a_block_that_no_page_has_a_form_for_is_named(tmp_path, text, message):
    with pytest.raises(Explained, match=message):
        blocks(template_text(templates(tmp_path, text), TWO))


def test_the_projects_own_templates_are_of_blocks_that_every_page_has_a_form_for():
    """But for what only a frame can fill in."""
    for path in FOLDER.glob("*/section.md"):
        tokens = MarkdownIt("commonmark").parse(path.read_text())
        assert {t.type for t in tokens if t.level == 0} <= {
            *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline"),
        }, path


def test_statements_stand_in_the_section_of_their_study(tmp_path):
    claims = [claim(key="k", study="b", statement="Of b."), claim(study="a", statement="Of a.")]
    sections = {s: Section({}, {}) for s in "ab"}
    stated = ledger(*claims)
    printed = collect(sections, stated, {}, level=0.95, traces=traces(stated, "a.py:1-2"))
    folder = templates(tmp_path, "{{ sections[0] }}\n\n{{ sections[1] }}", a=TOLD, b=TOLD)
    lines = summary(template_text(folder, printed), printed).splitlines()
    assert [line.split(" | ")[0] for line in lines if "Of" in line] == ["| Of a.", "| Of b."]


TOLD = "{{ table('claims') }}"
