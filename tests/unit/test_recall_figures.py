"""Figures of the decisive test from planted tables: what is drawn, whatever diverged."""

import math
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from processes import SCRIPTS

from normscope.nn.arms import ARMS
from normscope.paper import style

NAMES = ("notebook", "decisive", "slice", "factors", "sweep")
ARMS_DRAWN = ("layernorm", "manual_l2", "none")
RATE, OTHER, SEEDS = 0.001, 0.01, (1, 2)
KEYS = ["task", "arm", "learning_rate", "seed"]
MEASURED = ("loss", "calibrated_loss", "accuracy", "effective_rank_query", "sharpness")


@pytest.fixture(autouse=True)
def _fresh():
    with mpl.rc_context():
        yield
    plt.close("all")


def write_tables(place: Path, lost: tuple[str, ...] = (), rates: tuple[float, ...] = (RATE,)):
    """recall*.csv of three arms and two seeds; of lost arms every run diverged at step 7."""
    runs, curves, slices, spectra = [], [], [], []
    for i, arm in enumerate(ARMS_DRAWN):
        for rate in rates:
            for seed in SEEDS:
                key = dict(zip(KEYS, ("recall", arm, rate, seed), strict=True))
                gone = arm in lost
                values = dict.fromkeys(MEASURED, math.nan if gone else 0.1 * (i + seed))
                runs.append(key | values | {"diverged_at": 7 if gone else None})
                curves += [key | {"step": s, "train_loss": 3 / s + i} for s in (1, 5, 10)]
                if gone:
                    continue
                for kind, direction in (
                    ("published", 0),
                    ("restored", 0),
                    ("filter", 0),
                    ("filter", 1),
                ):
                    slices += [
                        key
                        | {"kind": kind, "direction": direction, "alpha": a, "offset": a}
                        | {"loss": 1 + i + a * a * (1 + direction)}
                        for a in (-0.5, 0.0, 0.5)
                    ]
                spectra += [
                    key | {"where": where, "index": k, "value": (i + 1) / 2**k}
                    for where in ("published", "query")
                    for k in range(4)
                ]
    columns = {
        "recall": [*KEYS, *MEASURED, "diverged_at"],
        "curves": [*KEYS, "step", "train_loss"],
        "slices": [*KEYS, "kind", "direction", "alpha", "offset", "loss"],
        "spectra": [*KEYS, "where", "index", "value"],
    }
    for (name, of), rows in zip(columns.items(), (runs, curves, slices, spectra), strict=True):
        pd.DataFrame(rows, columns=of).to_csv(place / f"{name}.csv", index=False)
    (place / "shown.rst").write_text("What is\n  shown.\n")


def draw(name: str, place: Path, monkeypatch, out: str = "figure") -> tuple[str, str]:
    """Run a figure's script on the tables; its SVG and its caption."""
    tables = {
        "notebook": ("runs", "curves", "slices", "spectra"),
        "decisive": ("runs", "curves", "slices", "spectra"),
        "slice": ("runs", "slices"),
    }
    cells = [f"recall-{arm}-{RATE:g}" for arm in ARMS_DRAWN]
    words = cells if name in tables else []
    for table in tables.get(name, ("runs",)):
        file = "recall" if table == "runs" else table
        words = [*words, f"--{table}", str(place / f"{file}.csv")]
    if name in ("notebook", "slice"):
        words += ["--seed", "1"]
    if name == "factors":
        words += ["--task", "recall", "--learning-rate", str(RATE)]
    looks = ["--width-mm", "170", "--font-pt", "8", "--level", "0.95"]
    stem = place / out / name
    script = SCRIPTS / f"figure_{name}.py"
    places = ["--caption", str(place / "shown.rst"), "--out", str(stem)]
    monkeypatch.setattr(sys, "argv", [str(script), *words, *looks, *places])
    runpy.run_path(str(script), run_name="__main__")
    assert stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    return stem.with_suffix(".svg").read_text(), stem.with_suffix(".txt").read_text()


def texts(svg: str) -> list[str]:
    """What is written in a figure; matplotlib names the text beside its glyphs."""
    return re.findall(r"<!-- (.*?) -->", svg)


def names(name: str, arms: tuple[str, ...]) -> list[str]:
    rates = (RATE, OTHER) if name == "sweep" else (RATE,)
    return [f"{arm} recall {rate:g}" for arm in arms for rate in rates]


def check(name: str, lost: tuple[str, ...], svg: str, caption: str) -> None:
    """Arms that are named, diverged ones too; a caption with n and every divergence."""
    written = texts(svg)
    if name == "factors":
        assert {"radius sqrt(d)", "radius 1", "other", "No norm", "gain", "both"} <= set(written)
        assert "radius learned" not in written
    elif name == "sweep":  # colour and line say what the affine part is, the column the radius
        assert {"affine: both, centered", "affine: none", "No norm"} <= set(written)
        assert {"radius sqrt(d)", "radius 1", "other"} <= set(written)
    else:
        assert {ARMS[arm].label for arm in ARMS_DRAWN} <= set(written)
    n, seeds = (
        ("1 trained model", (1,)) if name in ("notebook", "slice") else ("2 trained models", SEEDS)
    )
    diverged = [f"{x} seed {seed} at step 7" for x in names(name, lost) for seed in seeds]
    assert caption.startswith("What is shown. ")
    assert f"n: {n} each of {', '.join(names(name, ARMS_DRAWN))}." in caption
    assert f" Diverged, and in no mean: {', '.join(diverged)}." in caption


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_around_an_arm_that_diverged_is_the_same_bytes_again(name, tmp_path, monkeypatch):
    write_tables(tmp_path, lost=("none",), rates=(RATE, OTHER) if name == "sweep" else (RATE,))
    svg, caption = draw(name, tmp_path, monkeypatch, "one")
    check(name, ("none",), svg, caption)
    assert texts(svg).count("diverged") == (name == "slice")
    if name in ("decisive", "slice"):
        assert re.search(r"\. 2 (such )?directions", caption)
    draw(name, tmp_path, monkeypatch, "other")
    one, other = (
        {p.name: p.read_bytes() for p in (tmp_path / out).iterdir()} for out in ("one", "other")
    )
    assert set(one) == {f"{name}.pdf", f"{name}.svg", f"{name}.txt"}
    assert one == other


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_arms_that_all_diverged_says_so(name, tmp_path, monkeypatch):
    """The tables of slices and spectra have a header and no row."""
    write_tables(tmp_path, ARMS_DRAWN, rates=(RATE, OTHER) if name == "sweep" else (RATE,))
    svg, caption = draw(name, tmp_path, monkeypatch)
    check(name, ARMS_DRAWN, svg, caption)
    panels = {"slice": len(ARMS_DRAWN), "decisive": 2}
    assert texts(svg).count("diverged") == panels.get(name, 0)


def test_a_figure_of_sound_runs_says_that_none_diverged(tmp_path, monkeypatch):
    write_tables(tmp_path)
    svg, caption = draw("decisive", tmp_path, monkeypatch)
    assert caption.endswith(" No run diverged.\n")
    assert "diverged" not in texts(svg)


def test_without_two_rates_the_sweep_says_so(tmp_path, monkeypatch):
    write_tables(tmp_path)
    svg, caption = draw("sweep", tmp_path, monkeypatch)
    assert "no arm has two learning rates" in texts(svg)
    assert caption.endswith("No arm has two learning rates in this configuration.\n")


def labels(values: list[float]) -> tuple[list[float], list[str]]:
    """Ticks with a label within the view of a logarithmic axis, and their labels."""
    style.use(8)
    figure, axes = style.canvas(80, 60, 1, 1)
    axis = axes[0, 0]
    axis.plot(values, marker="o")
    style.log_y(axis)
    figure.canvas.draw()
    low, high = axis.get_ylim()
    ticks = [*axis.yaxis.get_major_ticks(), *axis.yaxis.get_minor_ticks()]
    there = [(t.get_loc(), t.label1.get_text()) for t in ticks]
    shown = [(y, text) for y, text in there if low <= y <= high and text]
    assert axis.get_yscale() == "log"
    return [y for y, _ in shown], [text for _, text in shown]


@pytest.mark.parametrize(
    "values", [[2.0, 2.4], [2.0, 9.0], [0.9, 1.1], [0.02, 0.4], [150.0, 2000.0]]
)
def test_a_logarithmic_axis_over_little_has_plain_numbers(values):
    ticks, written = labels(values)
    assert 2 <= len(ticks) <= 12
    assert [float(text) for text in written] == pytest.approx(ticks, rel=5e-3)
    assert len(set(written)) == len(written)


def test_a_logarithmic_axis_over_much_has_powers_of_ten():
    ticks, written = labels([1e-5, 1.0])
    assert 2 <= len(ticks) <= 7
    assert np.log10(ticks) == pytest.approx(np.round(np.log10(ticks)))
    assert all(re.fullmatch(r"\$\\mathdefault\{10\^\{-?\d+\}\}\$", text) for text in written)


@pytest.mark.parametrize("values", [[2.9957, 2.9961], [1.0, 1.001]])
def test_a_logarithmic_axis_over_next_to_nothing_has_ticks_that_are_told_apart(values):
    _, written = labels(values)
    assert len(written) >= 2
    assert len(set(written)) == len(written)


def test_a_logarithmic_axis_over_a_decade_and_a_half_has_two_labels():
    """The view is from 0.017 to 0.59."""
    ticks, _ = labels([0.02, 0.5])
    assert len(ticks) >= 2


@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.parametrize("values", [[], [math.nan, math.nan], [3.0], [0.0, 0.0]])
def test_a_logarithmic_axis_of_nothing_or_of_one_value_can_be_drawn(values):
    figure, axes = style.canvas(80, 60, 1, 1)
    axes[0, 0].plot(values, marker="o")
    style.log_y(axes[0, 0])
    figure.canvas.draw()
    low, high = axes[0, 0].get_ylim()
    assert math.isfinite(low)
    assert low < high
