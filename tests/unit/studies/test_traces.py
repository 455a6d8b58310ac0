"""Where statements are tested and measured: lines that are there, and that move with the code."""

import ast

import pytest
import yaml
from processes import ROOT

from normscope.io.provenance import PACKAGE
from normscope.ledger.expression import columns_in
from normscope.studies.traces import spans, traces

CLAIMS = ROOT / "data" / "claims.yaml"
ENTRIES = yaml.safe_load(CLAIMS.read_text())["claims"]
TRACES = traces(CLAIMS, ROOT)


def lines(place: str) -> list[str]:
    path, _, span = place.partition(":")
    first, last = map(int, span.split("-"))
    text = (ROOT / path).read_text().splitlines()
    assert 1 <= first <= last <= len(text)
    return text[first - 1 : last]


def test_every_statement_is_traced_and_no_line_of_one_is_left_out():
    assert list(TRACES) == list(ENTRIES)
    shown = [line for trace in TRACES.values() for line in lines(trace["test"])]
    written = CLAIMS.read_text().partition("\nclaims:\n")[2].splitlines()
    kept = [line for line in written if line.strip() and not line.lstrip().startswith("#")]
    assert [line for line in shown if line in kept] == kept


@pytest.mark.parametrize("key", ENTRIES)
def test_the_lines_of_a_test_are_its_entry_and_those_of_its_code_write_its_measure(key):
    trace, entry = TRACES[key], ENTRIES[key]
    head, *body = lines(trace["test"])
    assert head == f"  {key}:"
    assert all(line.startswith("    ") for line in body)
    parts = ["\n".join(lines(place)) for place in trace["code"]]
    assert all(
        isinstance(ast.parse(part).body[0], ast.FunctionDef | ast.ClassDef) for part in parts
    )
    contrast = entry.get("contrast")
    if contrast is None:
        assert f'@claim("{key}")' in parts[0]
    else:
        assert contrast["table"] in trace["tables"]
        for column in columns_in(str(contrast["measure"])):
            names = [column, *(f"{column[:i]}{{" for i in range(3, len(column)))]
            assert any(name in part for name in names for part in parts), column
    for table in trace["tables"]:
        study, _, name = table.partition(".")
        assert f'"{name}"' in (PACKAGE / f"studies/{study}/tables.py").read_text()


def test_lines_move_with_what_stands_above_them(tmp_path):
    """Comments behind an entry are not of it."""
    (tmp_path / "claims.yaml").write_text(f"# one\n# two\n{CLAIMS.read_text()}\n  # the end\n\n")
    moved = spans((tmp_path / "claims.yaml").read_text())
    were = spans(CLAIMS.read_text())
    assert moved == {key: (first + 2, last + 2) for key, (first, last) in were.items()}
