"""The summary's templates: words and tables of their study, and errors for unknown names."""

from dataclasses import replace

import pytest
from page_recipes import template_text, templates, text_table

from normscope.errors import Explained
from normscope.pages.frame import Frame

TWO = Frame(
    {"level": "95%"},
    {"a": {"word": "one", "list": [{"x": 1}]}, "b": {"word": "two"}, "c": {"word": "three"}},
    {f"{s}.t": text_table(s, "x", [[f"cell of {s}"]]) for s in "ab"}
    | {"b.none": text_table("", "x")},
    {},
    {},
)


def written(folder, top: str, **sections: str) -> str:
    return template_text(templates(folder, top, **sections), TWO)


def test_a_section_has_the_words_and_tables_of_its_study_in_the_frames_order(tmp_path):
    top = "{{ a.word }} {{ level }}\n\n{% for s in sections %}\n{{ s }}\n\n{% endfor %}"
    text = written(
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
        written(tmp_path, top, a=section)


def test_a_word_that_would_hide_behind_a_function_is_an_error(tmp_path):
    hiding = replace(TWO, sections={"a": {"table": ["one protocol"]}})
    with pytest.raises(Explained, match=r"study a: .* functions: table"):
        template_text(templates(tmp_path, "{{ sections }}", a="{{ table }}"), hiding)
