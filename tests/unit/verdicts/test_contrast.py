"""The engine of contrasts: planted tables of a made-up study, by hand and against scipy."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from ledger_recipes import reading
from normscope.verdicts.claim import Evidence, Finding
from normscope.verdicts.contrast import find
from scipy import stats
from statements import SELECTION

from normscope.errors import Explained
from normscope.verdicts.expression import columns_in, holds, measure, span
from normscope.verdicts.vocabulary import Vocabulary

NAN = math.nan
COLUMNS = ["arm", "rate", "depth", "seed", "loss", "accuracy", "diverged_at"]


class Study:
    """Two named cells, and labels."""

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            columns={"runs": COLUMNS},
            values={"arm": ("a", "b", "c")},
            names={
                "protocol": {
                    "was": [{"rate": 0.1}],
                    "now": [{"rate": 0.2}],
                    "now_or_was": [{"rate": 0.2}, {"rate": 0.1}],
                }
            },
            labels={"arm": {"a": "A", "b": "B", "c": "C"}, "depth": "{} blocks", "rate": "{:g}"},
        )


def runs(arm: str, losses: Sequence[float | None], **changes: Any) -> list[dict[str, Any]]:
    """One model per seed; None is a divergence."""
    row = {"arm": arm, "rate": 0.2, "depth": 2, "accuracy": 1.0} | changes
    return [
        row
        | {"seed": seed, "loss": NAN if v is None else v, "diverged_at": 9 if v is None else NAN}
        for seed, v in enumerate(losses)
    ]


def find_in(*parts: list[dict[str, Any]], **changes: Any) -> Finding:
    """What a contrast of these rows finds; ``changes`` go to the contrast, or to the reading."""
    contrast = {"table": "made.runs", "measure": "loss", "cells": {"protocol": "now", "arm": "a"}}
    of_reading = {k: changes.pop(k) for k in list(changes) if k in ENTRY_KEYS}
    table = pd.DataFrame([row for part in parts for row in part], columns=COLUMNS)
    evidence = Evidence({"made": {"runs": table}}, {"made": Study()}, 0.95)
    unit = "formula" if of_reading.get("test") == "fact" else "model"
    of_reading = {"criterion": "as it says", "unit": unit} | of_reading
    return find(reading(contrast=contrast | changes, **of_reading), evidence)


ENTRY_KEYS = ("bound", "margin", "margin_because", "direction", "scale", "test", "holds_in")
SIX = [1.0, 2.0, 1.5, 1.2, 0.7, 0.4]


def test_a_ratio_is_of_logarithms_and_0_where_its_first_is_not_positive():
    log = {"scale": "log", "bound": 1.0, "over": {"arm": "b"}}
    ones = runs("b", [1.0] * 6)
    case = find_in(runs("a", [2.0, 8.0] * 3), ones, **log).cases[""]
    logs = [math.log(v) for v in [2.0, 8.0] * 3]
    p = stats.ttest_1samp(logs, 0, alternative="greater").pvalue
    assert (case.effect, case.p_holds) == (pytest.approx(4), pytest.approx(p))
    within = log | {"test": "equivalence", "direction": "within", "margin": 2.0}
    within |= {"margin_because": "planted"}
    assert find_in(runs("a", [1.5] * 6), ones, **within).answer == "holds"
    assert find_in(runs("a", [2.5] * 6), ones, **within).answer == "fails"
    for value in (-1.0, 0.0):
        assert find_in(runs("a", [value] * 6), ones, **within).answer == "fails"
        assert (
            find_in(runs("a", [value] * 6), runs("b", [0.0] * 6), **log).cases[""].effect < 1e-300
        )
    assert find_in(runs("a", [1.5] * 6), runs("b", [0.0] * 6), **within).answer == "fails"


def test_a_list_makes_a_case_for_each_value_in_its_order():
    parts = runs("a", SIX), runs("b", [0.0] * 6), runs("c", [9.0] * 6)
    finding = find_in(*parts, less={"arm": ["c", "b"]})
    reads = {name: case.answer() for name, case in finding.cases.items()}
    assert list(reads.items()) == [("the pair with C", "fails"), ("the pair with B", "holds")]
    missing = find_in(*parts[:1], less={"arm": ["b"]})
    assert missing.cases["the pair with B"].answer() == "no data"


def test_each_makes_a_case_for_every_value_that_both_sides_have():
    parts = [runs("a", SIX, depth=d) for d in (2, 4, 8)] + [runs("b", [0.0] * 6, depth=4)]
    assert list(find_in(*parts, each=["depth"]).cases) == ["2 blocks", "4 blocks", "8 blocks"]
    assert list(find_in(*parts, each=["depth"], less={"arm": "b"}).cases) == ["4 blocks"]


def test_at_picks_a_value_that_both_sides_have():
    parts = [runs("a", [float(d)] * 6, depth=d) for d in (2, 4, 8)]
    parts += [runs("b", [0.0] * 6, depth=d) for d in (2, 4)]
    at = {"column": "depth", "pick": "greatest"}
    assert find_in(*parts, at=at, less={"arm": "b"}).cases["4 blocks"].effect == 4
    assert list(find_in(*parts, at=at).cases) == ["8 blocks"]
    least = {"column": "depth", "pick": "least", "at_least": 4}
    assert list(find_in(*parts, at=least).cases) == ["4 blocks"]
    assert find_in(*parts, at=least | {"at_least": 9}).cases == {}
    lost = runs("a", [NAN] * 6, depth=16)  # rows without the measure are ignored
    assert list(find_in(*parts, lost, at=at).cases) == ["8 blocks"]


def test_best_is_the_setting_of_least_mean_over_the_other_seeds():
    """Seed 0 of rate 0.1 is so good that all others choose it, and 0 itself does not."""
    best = {"columns": ["rate"], "by": "loss"}
    parts = [runs("a", [5.0] * 6), runs("a", [-90.0, 6.0, 6.0, 6.0, 6.0, 6.0], rate=0.1)]
    cells = {"arm": "a"}
    case = find_in(*parts, cells=cells, best=best).cases[""]
    assert case.effect == pytest.approx((5 + 5 * 6) / 6)
    b = [runs("b", [1.0] * 6), runs("b", [2.0] * 6, rate=0.1)]
    finding = find_in(*parts, *b, cells=cells, less={"arm": "b"}, best=best)
    assert finding.cases[""].effect == pytest.approx(35 / 6 - 1)
    unknown = runs("b", [0.0] * 4 + [None, None], rate=0.4)  # not chosen, however good the others
    finding = find_in(*parts, *b, unknown, cells=cells, less={"arm": "b"}, best=best)
    assert finding.cases[""].effect == pytest.approx(35 / 6 - 1)
    alone = find_in(runs("a", [5.0]), runs("a", [4.0], rate=0.1), cells=cells, best=best)
    assert alone.cases[""].effect == 4


@pytest.mark.parametrize(
    ("where", "a", "b", "c", "reads"),
    [
        ("both", 1.0, 0.9, 0.0, "holds"),
        ("both", 1.0, 0.89, 1.0, "undecided: too bad"),
        ("both", 0.89, 1.0, 1.0, "undecided: too bad"),
        ("either", 0.0, 1.0, 0.0, "holds"),
        ("either", 0.0, 0.0, 1.0, "undecided: too bad"),
        ({"arm": "c"}, 0.0, 0.0, 1.0, "holds"),
        ({"arm": "c"}, 1.0, 1.0, 0.0, "undecided: C too bad"),
        ({"arm": ["a", "b", "c"]}, 1.0, 0.0, 1.0, "undecided: B too bad"),
        ({"arm": ["a", "c"]}, 1.0, 0.0, 1.0, "holds"),
    ],
)
def test_what_is_compared_must_meet_its_needs(where, a, b, c, reads):
    accuracy = {"a": a, "b": b, "c": c}
    losses = {"a": SIX, "b": [0.0] * 6, "c": [0.0] * 6}
    parts = [runs(arm, losses[arm], accuracy=accuracy[arm]) for arm in accuracy]
    need = {"check": "accuracy >= 0.9", "where": where, "why": "too bad"}
    assert find_in(*parts, less={"arm": "b"}, needs=[need]).answer == reads


def test_of_models_that_diverged_the_others_are_a_selection():
    need = {"check": "accuracy > 0", "where": {"arm": "c"}, "why": "bad"}
    whole = {
        arm: runs(arm, [*losses, 1.0])
        for arm, losses in {"a": SIX, "b": [0.0] * 6, "c": SIX}.items()
    }
    contrast: dict[str, Any] = {"less": {"arm": "b"}, "needs": [need]}
    assert find_in(*whole.values(), **contrast).answer == "holds"
    for arm in whole:
        lost = whole | {arm: runs(arm, [*SIX, None])}
        assert find_in(*lost.values(), **contrast).answer == SELECTION
    gone = {arm: rows for arm, rows in whole.items() if arm != "c"}
    assert find_in(*gone.values(), **contrast).answer == "no data"


def test_a_divergence_that_is_an_outcome_with_a_number_counts():
    rows = [row | {"diverged_at": 9.0} for row in runs("a", SIX)]
    assert find_in(rows).answer == "holds"
    assert find_in(rows, measure="accuracy / (loss - 2)").answer == SELECTION


def test_the_published_protocol_has_a_verdict_of_means_alone():
    was = runs("a", [-3.0, 1.0], rate=0.1)
    finding = find_in(runs("a", SIX), was, as_published={"protocol": "was"})
    assert (finding.its_verdict, finding.answer) == ("fails", "holds")
    assert "−1.00" in finding.published
    none = find_in(runs("a", SIX), as_published={"protocol": "was"})
    assert none.its_verdict == "no data"
    assert find_in(runs("a", SIX)).its_verdict == ""


def test_of_facts_the_worst_row_decides():
    fact = {"test": "fact", "direction": "less", "bound": 2.5}
    finding = find_in(runs("a", SIX), runs("b", [9.0]), **fact)
    assert (finding.cases[""].fact, finding.cases[""].effect) == (True, 2.0)
    assert find_in(runs("a", [*SIX, 3.0, NAN]), **fact).cases[""].fact is False
    assert find_in(runs("b", SIX), **fact).answer == "no data"


def test_cells_that_are_not_told_apart_are_an_error():
    with pytest.raises(Explained, match=r"several rows of seed 0, which differ in rate, depth:"):
        find_in(runs("a", SIX), runs("a", SIX, rate=0.1, depth=4), cells={"arm": "a"})


def test_overlapping_cells_select_a_model_once():
    overlapping = {"protocol": ["now", "now_or_was"], "arm": "a"}
    assert find_in(runs("a", SIX), cells=overlapping).cases[""].n == 6


def test_a_missing_key_is_a_value():
    """Models whose rate is missing are one setting, and two of them of one seed an error."""
    best = {"columns": ["rate"], "by": "loss"}
    both = runs("a", SIX, rate=NAN), runs("a", [9.0] * 6)
    cells = {"arm": "a"}
    assert find_in(*both, cells=cells, best=best).cases[""].effect == pytest.approx(sum(SIX) / 6)
    with pytest.raises(Explained, match="several rows of seed 0, which differ in depth"):
        find_in(*both, runs("a", SIX, rate=NAN, depth=4), cells=cells, best=best)


def test_a_sentence_has_the_numbers_of_its_case():
    finding = find_in(
        runs("a", [3.0] * 6), runs("b", [1.0] * 6), less={"arm": "b"},
        sentence="{first} and {second}: {effect}{interval}, {n}",
    )  # fmt: skip
    assert finding.corrected == "difference: 3.00 and 1.00: 2.00 [2.00, 2.00], 6 seeds"


def test_a_sentence_compares_the_seeds_that_both_sides_have():
    finding = find_in(
        runs("a", [3.0] * 6), runs("b", [1.0] * 6 + [50.0] * 6), less={"arm": "b"},
        sentence="{first} and {second}, {n}",
    )  # fmt: skip
    assert finding.corrected == "difference: 3.00 and 1.00, 6 seeds"


def test_a_listed_case_without_data_is_named_next_to_the_others():
    cells = {"protocol": "now", "arm": ["a", "b", "c"], "depth": 2}
    named = find_in(runs("a", SIX), runs("c", SIX), each=["arm"], cells=cells)
    assert list(named.cases) == ["A", "C"]
    assert named.corrected.endswith("; B: no data")
    assert find_in(runs("a", SIX), each=["depth"]).corrected.count("no data") == 0
    assert find_in(runs("c", SIX, rate=0.1), each=["arm"], cells=cells).corrected == "–"


def test_a_sentence_on_medians_has_the_medians_of_both_sides():
    finding = find_in(
        runs("a", [3.0] * 5 + [90.0]), runs("b", [1.0] * 5 + [-80.0]), less={"arm": "b"},
        test="median", sentence="{first} and {second}: {effect}, {n}",
    )  # fmt: skip
    assert finding.corrected == "difference: 3.00 and 1.00: 2.00, 6 seeds, medians"


def test_measures_are_arithmetic_of_columns():
    rows = pd.DataFrame({"a": [3.0, 0.0], "b": [4.0, 4.0], "c": [0.0, 2.0]}, index=[7, 7])
    assert measure("-a + (b - 1) * 2 / 3", rows).tolist() == [-1, 2]
    assert measure("(a - 1) ** 3", rows).tolist() == ((rows["a"] - 1) ** 3).tolist()
    assert span("a ** 2", {"a": (-2, 3)}) == (0, 9)
    assert span("a ** 3", {"a": (-2, 3)}) == (-8, 27)
    assert span("a ** 100", {"a": (0, 1e9)}) == (-math.inf, math.inf)
    assert measure("a / c", rows).tolist() == pytest.approx([NAN, 0], nan_ok=True)
    assert columns_in("a * b <= a + 1") == ["a", "b"]
    assert holds("a < b / 2", rows) is True  # 1.5 < 2
    assert holds("a < 1.5", rows) is False
    assert holds("a < b", rows.assign(b=NAN)) is None
