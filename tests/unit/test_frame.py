"""The frame: all that is printed, once; and what one number of the input changes of the paper."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import paper_pages
import pytest
from pretrained_claimed import DATA, ENTRIES
from pretrained_evidence import strict
from test_summary import row as arm_row

from normscope.errors import Explained
from normscope.nn.recipe import Model
from normscope.paper.frame import Frame, named, read
from normscope.paper.markdown import summary
from normscope.paper.words import markdown
from normscope.studies.main.pages import FIGURES
from normscope.train.recipe import Training

HOSTILE = 'a | b <c> {d} "e" \\f $g$ [[figures]] [h](i) 100% \u2212é\n# j'
PLACE = r"\[\[table (\w+)\]\]"
Leaves = dict[tuple[str, ...], Any]


def small(**changes: Any) -> Frame:
    tables = {
        "b": pd.DataFrame({"x": ["1", HOSTILE], HOSTILE: ["2", ""]}),
        "a": pd.DataFrame(columns=["x", "y"]),
        "none": pd.DataFrame(),
    }
    captions = {"z": ("Title", HOSTILE), "a": (HOSTILE, "")}
    values: dict[str, Any] = {"texts": {"t": HOSTILE, "s": "1"}, "tables": tables}
    values |= {"captions": captions, "numbers": {"y loss": "−1", HOSTILE: HOSTILE}}
    return Frame(**values | changes)


def test_a_frame_is_read_as_it_was_written(tmp_path):
    was = small()
    was.write(tmp_path / "frame.json")
    now = read(tmp_path / "frame.json")
    assert (now.texts, now.numbers) == (was.texts, was.numbers)
    assert list(now.captions.items()) == list(was.captions.items())
    assert set(now.tables) == set(was.tables)
    for name, table in was.tables.items():
        assert list(now.tables[name]) == list(table)
        assert now.tables[name].to_numpy().tolist() == table.to_numpy().tolist()
        assert markdown(now.tables[name]) == markdown(table)
    now.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "frame.json").read_bytes()


def test_cells_are_words(tmp_path):
    small(tables={"a": pd.DataFrame({"n": [3, 4], "x": [0.5, 1.0]})}).write(tmp_path / "f.json")
    assert read(tmp_path / "f.json").tables["a"].to_numpy().tolist() == [["3", "0.5"], ["4", "1.0"]]


def test_two_numbers_of_one_name_are_an_error():
    assert named([(("a", 1), "x"), (["a", 2], "y")]) == {"a 1": "x", "a 2": "y"}
    assert named([]) == {}
    with pytest.raises(Explained, match="two numbers are called 'a b c': 1 and 2"):
        named([(("a", "b c"), "1"), (("a b", "c"), "2")])
    with pytest.raises(Explained, match="'a'"):
        named([(["a"], "1"), (["a"], "1")])


def test_a_page_is_its_template_with_words_tables_and_figures():
    tables = {"a": pd.DataFrame({"x": ["1"]}), "in_text": pd.DataFrame({"y": ["*"]})}
    frame = small(texts={"t": "word", "of": "[[table in_text]]"}, tables=tables)
    found = summary("{t}\n\n[[table a]]\n\n{of}\n\n[[figures]]\n\nend [[table a]]", frame)
    a = "| x |\n| --- |\n| 1 |"
    assert found.startswith(f"word\n\n{a}\n\n| y |\n| --- |\n| \\* |\n\n![Title](figures/z.svg)")
    assert found.endswith(f"\n\nend {a}")
    with pytest.raises(KeyError):
        summary("{gone} [[figures]]", frame)
    with pytest.raises(KeyError):
        summary("[[table gone]] [[figures]]", frame)


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    """A paper of small tables, with all that it is made of."""
    root = paper_pages.write(tmp_path_factory.mktemp("first") / "paper")
    paper_pages.judge(root)
    paper_pages.collect(root)
    paper_pages.print_page(root)
    return root


@pytest.fixture
def root(first, tmp_path) -> Path:
    """The same paper, to be changed."""
    return shutil.copytree(first, tmp_path / "paper")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All words of a frame, by where they are."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in pairs:
            yield from leaves(part, (*path, str(key)))
    else:
        yield path, value


def frame_of(root: Path) -> Leaves:
    return dict(leaves(json.loads((root / "frame.json").read_text())))


def lines_of(root: Path) -> list[str]:
    return (root / "summary.md").read_text().splitlines()


def change(root: Path, table: str, column: str, value: Any, row: int = 0) -> None:
    """One cell of an input; every other byte stays."""
    path = root / f"{table}.csv"
    text = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert text.loc[row, column] != str(value)
    text.loc[row, column] = str(value)
    text.to_csv(path, index=False, lineterminator="\n")


def remade(root: Path) -> None:
    paper_pages.judge(root)
    paper_pages.collect(root)
    paper_pages.print_page(root)


def changed(was: Path, now: Path) -> Leaves:
    """What is not the same in the two frames, as it is now; there is no more and no less."""
    one, other = frame_of(was), frame_of(now)
    assert set(one) == set(other)
    return {path: other[path] for path in one if one[path] != other[path]}


def changed_lines(was: Path, now: Path) -> list[tuple[str, str]]:
    one, other = lines_of(was), lines_of(now)
    assert len(one) == len(other)
    return [(a, b) for a, b in zip(one, other, strict=True) if a != b]


def column(root: Path, table: str, name: str) -> str:
    return str(
        json.loads((root / "frame.json").read_text())["tables"][table]["columns"].index(name)
    )


def test_all_is_printed_the_same_from_the_same_inputs(first, root):
    remade(root)
    assert changed(first, root) == {}
    assert changed_lines(first, root) == []
    for name in ("claims.json", "frame.json", "summary.md"):
        assert (root / name).read_bytes() == (first / name).read_bytes()


def test_the_mean_of_an_arm_changes_its_cell_and_its_number_alone(first, root):
    change(root, "tables/arms", "mean", 1.817, row=1)
    remade(root)
    cell = ("tables", "loss", "rows", "1", column(root, "loss", "loss"))
    assert changed(first, root) == {cell: "1.817", ("numbers", "rmsnorm pre loss"): "1.817"}
    ((was, now),) = changed_lines(first, root)
    assert was.startswith("| RMSNorm, pre |")
    assert now == was.replace(" 1.800 ", " 1.817 ") != was


def test_the_mean_of_the_baseline_also_changes_what_stands_beside_the_published(first, root):
    """Where settings are those of the published number."""
    change(root, "tables/arms", "mean", 1.877)
    remade(root)
    cell = ("tables", "loss", "rows", "0", column(root, "loss", "loss"))
    expected = {cell: "1.877", ("numbers", "layernorm pre loss"): "1.877"}
    found = changed(first, root)
    beside = {k: v for k, v in found.items() if k[:2] == ("tables", "published")}
    assert {k: v for k, v in found.items() if k not in beside} == expected
    at = column(root, "published", "corrected")
    assert all(k[-1] == at and v == "1.877 [1.850, 1.950]" for k, v in beside.items())
    lines = changed_lines(first, root)
    assert len(lines) == 1 + len(beside)
    assert all(now == was.replace("1.900", "1.877") for was, now in lines)


def test_a_caption_changes_its_line_alone(first, root):
    (root / "figures" / "gain.txt").write_text("Another caption.\n")
    remade(root)
    assert changed(first, root) == {("captions", "gain", "1"): "Another caption."}
    ((was, now),) = changed_lines(first, root)
    assert now == was.replace("Caption of gain.", "Another caption.") != was


def test_a_measure_of_a_model_changes_its_claims_and_what_the_ledger_says_of_them(first, root):
    """A smallest singular value, of one of 6 seeds; no table but those of claims shows it."""
    rates = pd.read_csv(root / "depth" / "rates.csv")
    change(root, "depth/rates", "smallest", 0.83)
    value = float(rates["smallest"].to_list()[0])  # of about 0.8, above the bound of 0.5 all
    remade(root)
    row = str(list(ENTRIES).index("identity_path"))
    mean = rates["smallest"].mean() + (0.83 - value) / 6
    found = changed(first, root)
    of_claims = [e.document for e in ENTRIES.values()].index("tutorial")
    line = str(int(row) - of_claims)
    told = ("tables", "claims_tutorial", "rows", line, column(root, "claims_tutorial", "corrected"))
    effect = ("tables", "ledger", "rows", row, column(root, "ledger", "effect"))
    g = ("tables", "ledger", "rows", row, column(root, "ledger", "Hedges g"))
    numbers = {("numbers", f"claim identity_path {w}") for w in ("effect", "low", "high")}
    numbers |= {("numbers", "claim identity_path hedges_g")}
    assert set(found) <= {told, effect, g, *numbers}
    assert set(found) >= {told, effect, ("numbers", "claim identity_path effect")}
    assert found["numbers", "claim identity_path effect"] == f"{mean:.3f}"
    assert found[effect].startswith(f"least singular value of a block's Jacobian: {mean:.3f} [")
    lines = changed_lines(first, root)
    assert len(lines) == 2
    assert all(ENTRIES["identity_path"].statement[:20] in now for _, now in lines)


def test_a_word_of_the_ledger_changes_its_cells_alone(first, root, tmp_path):
    book = tmp_path / "claims.yaml"
    text = (DATA / "claims.yaml").read_text()
    words = "one model above 1 is enough"
    assert text.count(words) == 1
    book.write_text(text.replace(words, "a single model above 1 is enough"))
    paper_pages.judge(root, book)
    paper_pages.collect(root)
    paper_pages.print_page(root)
    assert changed(first, root) == {}  # it fails, as published: no reason is given
    assert changed_lines(first, root) == []
    words = "differ in nothing else, RMSNorm's last block has"
    assert text.count(words) == 1
    book.write_text(text.replace(words, "differ in no other way, RMSNorm's last block has"))
    paper_pages.judge(root, book)
    paper_pages.collect(root)
    paper_pages.print_page(root)
    found = changed(first, root)
    assert {k[1] for k in found} == {"ledger", "claims_pretrained"}
    assert len(found) == len(changed_lines(first, root)) == 2


def test_every_place_of_the_page_is_a_table_of_the_frame_and_every_table_is_shown(first):
    frame = read(first / "frame.json")
    template = paper_pages.TEMPLATE.read_text()
    places = re.findall(PLACE, template.format(**frame.texts))
    assert sorted(places) == sorted(set(places))
    hidden = {"best", "factors"}  # of one learning rate, and of no crossed factors, words stand
    assert set(places) == set(frame.tables) - hidden
    assert all(frame.tables[name].empty for name in hidden)
    assert template.count("[[figures]]") == 1
    assert list(frame.captions) == list(FIGURES)
    page = (first / "summary.md").read_text()
    assert "[[" not in page
    for table in frame.tables.values():
        if not table.empty:
            assert markdown(table) in page


def test_every_name_of_the_template_is_in_the_frame_and_no_other(first):
    asked = set(re.findall(r"\{(\w+)\}", paper_pages.TEMPLATE.read_text()))
    texts = set(read(first / "frame.json").texts)
    assert asked <= texts
    assert texts - asked <= {*Model.model_fields, *Training.model_fields}


def test_numbers_of_the_frame_are_those_of_its_tables(first):
    frame = read(first / "frame.json")
    numbers = frame.numbers
    assert numbers["layernorm pre loss"] == "1.900"
    assert numbers["layernorm pre loss low"] == "1.850"
    assert numbers["opt-125m measured last gain"] == "1.105"  # exp 0.1
    verdicts = [numbers[f"claims {v}"] for v in ("holds", "fails", "undecided")]
    assert sum(map(int, verdicts)) == int(numbers["claims"]) == len(ENTRIES)
    ledger = frame.tables["ledger"]
    counted = [str((ledger["corrected"] == v).sum()) for v in ("holds", "fails", "undecided")]
    assert counted == verdicts
    assert numbers["claims tests"] == str((ledger["p (Holm)"] != "–").sum())
    assert not [text for text in numbers.values() if re.search("nan|None|inf", text)]


def test_the_ledger_is_in_the_order_of_its_file_on_the_page(first):
    claims = strict(first / "claims.json")["claims"]
    assert [c["key"] for c in claims] == list(ENTRIES)
    assert strict(first / "frame.json")
    statements = read(first / "frame.json").tables["ledger"]["statement"].tolist()
    assert statements == [e.statement for e in ENTRIES.values()]


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        (
            "figure: trainability",
            "figure: nowhere",
            r"claims\.trainable\.figure: 'nowhere' is none",
        ),
        ("  h25:\n", "  h26:\n", r"claims\.h25 is missing: restore it"),
        ("direction: within", "direction: inside", r"claims\.unit_l2_is_flat\.direction"),
        ("documents:", "documents: [", "is no YAML"),
    ],
)
def test_a_wrong_file_of_claims_ends_with_its_fault(root, tmp_path, find, put, message):
    book = tmp_path / "claims.yaml"
    text = (DATA / "claims.yaml").read_text()
    assert find in text
    book.write_text(text.replace(find, put, 1))
    with pytest.raises(SystemExit, match=message):
        paper_pages.judge(root, book)


def test_a_statement_that_nothing_tests_ends_with_its_name(root, tmp_path):
    book = tmp_path / "claims.yaml"
    text = (DATA / "claims.yaml").read_text()
    one = text[text.index("  h25:\n") :].partition("\n\n")[0]
    book.write_text(f"{text}\n{one.replace('h25:', 'h26:', 1)}\n")
    with pytest.raises(SystemExit, match="nothing tests these claims: h26; remove them"):
        paper_pages.judge(root, book)


def test_two_arms_of_one_name_have_no_numbers(root):
    arms = pd.DataFrame([arm_row(), arm_row(mean=1.8)])
    arms.to_csv(root / "tables" / "arms.csv", index=False)
    with pytest.raises(SystemExit, match="two numbers are called 'layernorm pre loss'"):
        paper_pages.collect(root)
