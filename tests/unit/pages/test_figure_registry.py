"""The registry of figures: its entries, and one error for all that is wrong in them."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from processes import ROOT
from pydantic import BaseModel

from normscope.config import load as load_config
from normscope.errors import Explained
from normscope.pages.figures import Figure, check, load, select_figures
from normscope.pilot import read_project
from normscope.studies.stage import FOLDER

TABLES = {"main": ("runs", "arms"), "recall": ("runs", "slices")}
LOSS = {"title": "Loss", "caption": "Shown.", "tables": ["runs"]}


class Cell(NamedTuple):
    arm: str
    learning_rate: float


class Part(BaseModel):
    task: str = "copy"
    seeds: list[int] = [3, 4]
    rates: dict[str, float] = {"low": 0.0001}

    @property
    def first(self) -> Cell:
        return Cell("layernorm", 1e-7)

    def cells(self) -> list[Cell]:
        return [self.first]


class Whole(BaseModel):
    recall: Part = Part()


def checked(place: Path, registry: Any, drawings: tuple[str, ...] = ("loss",)) -> dict[str, Figure]:
    folder = place / "main/figures"
    folder.mkdir(parents=True)
    for name in drawings:
        (folder / f"{name}.py").touch()
    text = registry if isinstance(registry, str) else yaml.safe_dump(registry)
    (place / "main/figures.yaml").write_text(text)
    figures = load(place, TABLES)
    check(place, figures, TABLES, Whole())
    return figures


def test_the_registered_figures_pass_the_check():
    config = load_config(read_project(ROOT))
    tables = {name: study.TABLES for name, study in config.studies.items()}
    check(FOLDER, load(FOLDER, tables), tables, config)


@pytest.mark.parametrize(
    ("study", "figure", "block"),
    [
        ("main", "rates", {"protocol": "batch_2", "arms": ["dyt"], "placements": ["pre"]}),
    ],
)
def test_figures_over_rates_are_drawn_for_three_rates_of_one_cell(study, figure, block):
    raw = read_project(ROOT)
    figures = load(FOLDER, [study])

    def is_drawn(*rates: list[float], seed: int = 1, arms: list[str] = block["arms"]) -> bool:
        first, *others = [block | {"learning_rates": r, "seeds": [1]} for r in rates]
        added = [first, *(one | {"arms": arms, "seeds": [seed]} for one in others)]
        part = raw[study]
        part = part | {"runs": [*part["runs"], *added]}
        return figure in select_figures(figures, load_config(raw | {study: part}))

    assert not is_drawn([0.1, 0.2], [0.3], arms=["layernorm"])
    assert not is_drawn([0.1, 0.2], [0.2], seed=2)
    assert is_drawn([0.1, 0.2], [0.3])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("recall.task", "copy"),
        ("recall.seeds.1", 4),
        ("recall.rates.low", 0.0001),
        ("recall.first", ["layernorm", 1e-7]),
        ("recall.cells", [["layernorm", 1e-7]]),
        ("recall", {"task": "copy", "seeds": [3, 4], "rates": {"low": 0.0001}}),
    ],
)
def test_a_reference_is_the_value_of_the_configuration(tmp_path, path, value):
    params = {"it": {"config": path}, "inside": [{"x": {"config": path}}], "plain": {"config": 1}}
    (entry,) = checked(tmp_path, {"loss": LOSS | {"params": params}}).values()
    assert entry.values(Whole()) == {"it": value, "inside": [{"x": value}], "plain": {"config": 1}}


def test_a_figure_is_left_out_where_what_it_needs_is_empty(tmp_path):
    registry = {"loss": LOSS, "seeds": LOSS | {"needs": "recall.seeds"}}
    figures = checked(tmp_path, registry, ("loss", "seeds"))
    assert list(select_figures(figures, Whole())) == ["loss", "seeds"]
    assert list(select_figures(figures, Whole(recall=Part(seeds=[])))) == ["loss"]


def test_the_title_is_the_finding_only_where_the_verdict_supports_it(tmp_path):
    finding = {"title": "Lower", "statement": "is_lower", "verdict": "as claimed"}
    (entry,) = checked(tmp_path, {"loss": LOSS | {"finding": finding}}).values()
    verdicts = ({"is_lower": "as claimed"}, {"is_lower": "mixed"}, {})
    assert [entry.heading(one) for one in verdicts] == ["Lower", "Loss", "Loss"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"study": "recall"}, ["loss.study", "the folder says it"]),
        ({"tables": ["rums"]}, ["loss.tables", "'rums'", "of main", "mean runs?"]),
        ({"tables": ["recal.runs"]}, ["loss.tables", "'recal'", "mean recall?"]),
        ({"tables": ["recall.slice"]}, ["'slice'", "of recall", "mean slices?"]),
        ({"tables": ["runs", "runs"]}, ["loss.tables", "given twice: runs"]),
        ({"tables": []}, ["loss.tables"]),
        ({"titel": "T"}, ["loss.titel", "mean title?"]),
        ({"caption": ""}, ["loss.caption"]),
        ({"needs": "recall.seed"}, ["loss.needs", "mean seeds?"]),
        ({"params": {"x": {"config": "recall.tasks"}}}, ["loss.params", "mean task?"]),
        ({"params": {"x": [{"config": "recal.task"}]}}, ["config recal.task", "mean recall?"]),
        ({"params": {"x": {"config": "recall.seeds.2"}}}, ["'2'", "known: 0, 1"]),
        ({"params": {"x": {"config": "recall.task.upper"}}}, ["'upper'", "known: none"]),
    ],
)
def test_a_wrong_entry_is_one_error_with_the_nearest_right_word(tmp_path, change, words):
    with pytest.raises(Explained) as error:
        checked(tmp_path, {"loss": LOSS | change})
    for word in (str(tmp_path), "main/figures.yaml", *words):
        assert word in str(error.value)


@pytest.mark.parametrize(
    "text",
    ["loss: {a: 1}\nloss: {a: 2}\n", "a: [", "- loss\n", "A-b: {}\n", "loss: {}\n", "\x00", ""],
)
def test_an_invalid_file_is_an_error_that_names_it(tmp_path, text):
    with pytest.raises(Explained, match="figures"):
        checked(tmp_path, text)
