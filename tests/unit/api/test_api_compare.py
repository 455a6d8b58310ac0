"""``compare``: against scipy and statsmodels, and against the verdicts of the evidence."""

import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from processes import ROOT
from scipy import stats
from statsmodels.stats.power import TTestPower

import normscope
from normscope.statistics.summary import select

ALPHA, POWER = 0.005, 0.8


def planted(effect: float, n: int = 12, texts: int = 1, seed: int = 0) -> pd.DataFrame:
    """Runs of two norms, whose losses differ by an effect with a standard deviation of 0.01."""
    rng = np.random.default_rng(seed)
    rows = [
        {"norm": norm, "seed": i, "loss": loss, "text": f"text {text}"}
        for text in range(texts)
        for i, base in enumerate(rng.normal(2, 0.1, n))
        for norm, loss in (("layernorm", base), ("mine", base + rng.normal(effect, 0.01)))
    ]
    return pd.DataFrame(rows)


def only(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """The one row of a comparison of two levels."""
    (row,) = normscope.compare(*args, **kwargs).to_dict("records")
    return row


@pytest.mark.parametrize("effect", [0.0, 0.012, -0.03])
def test_the_tests_and_their_power_are_those_of_other_packages(effect):
    runs = planted(effect)
    row = only(runs, margin=0.02)
    wide = runs.pivot(index="seed", columns="norm", values="loss")
    x, test = wide["mine"] - wide["layernorm"], stats.ttest_rel(wide["mine"], wide["layernorm"])
    found = [row[name] for name in ("n", "difference", "low", "high", "p")]
    assert found == pytest.approx([12, x.mean(), *test.confidence_interval(0.95), test.pvalue])
    above, over = (stats.ttest_1samp(x, m, alternative="greater").pvalue for m in (-0.02, 0.02))
    inside, outside = max(above, 1 - over), min(1 - above, over)
    assert row["within_p"] == pytest.approx(2 * min(inside, outside), rel=1e-6)
    decided = {"yes": inside, "no": outside, "undecided": 1 - min(inside, outside)}
    assert decided[row["within"]] < ALPHA / 2 or row["within_p"] > ALPHA
    assert row["decided"] == (test.pvalue < ALPHA)
    t = stats.nct(11, row["detectable"] / x.std() * math.sqrt(12))
    critical = stats.t(11).ppf(1 - ALPHA / 2)
    assert t.sf(critical) + t.cdf(-critical) == pytest.approx(POWER, abs=1e-4)


def test_enough_is_the_n_of_the_easier_question():
    runs = planted(0.006, n=6, seed=1)
    row, losses = only(runs, margin=1e-5), runs["loss"].to_numpy()
    x = losses[1::2] - losses[::2]
    n = TTestPower().solve_power(x.mean() / x.std(ddof=1), alpha=ALPHA, power=POWER)
    assert row["enough"] == pytest.approx(n, abs=2)
    assert row["sentence"].endswith(f"n would have to be about {row['enough']}.")


def test_the_evidence_has_the_same_numbers():
    """Statements about a difference of losses, and an end from which the baseline is shifted."""
    chosen, found = normscope.table("main.chosen", ROOT / "evidence"), 0
    for kept in json.loads((ROOT / "evidence/claims.json").read_text())["verdicts"]:
        asked, result = kept["statement"], kept.get("results", {}).get("", {})
        expected = re.fullmatch(r"(?:below|above) (\S+)", asked.get("expect", ""))
        arms = asked.get("compare", "").split(" - ")
        is_loss = asked.get("measure") == "main.chosen.capped_loss" and "p" in result
        if is_loss and expected and {*arms} <= {*chosen["arm"]}:
            end = float(expected[1])
            runs = select(chosen[chosen["arm"].isin(arms)], **asked["models"])
            runs["loss"] = runs["capped_loss"] + end * (runs["arm"] == arms[1])
            text = "text" if runs["text"].nunique() > 1 else None
            row = only(runs, "arm", baseline=arms[1], text=text)
            ours = [
                row["n"],
                *(row[name] + end for name in ("difference", "low", "high")),
                row["p"],
            ]
            theirs = [result[name] for name in ("n", "effect", "low", "high", "p")]
            assert ours == pytest.approx(theirs, rel=1e-6)
            found += 1
    assert found


@pytest.mark.parametrize(
    ("effect", "n", "said"),
    [
        (0.1, 12, "they differ, by more than 0.03 (two one-sided tests: p = "),
        (0.015, 40, "they differ, by less than 0.03 ("),
        (0.0, 12, "they are equivalent within 0.03 ("),
        (0.02, 6, "neither a difference nor equivalence within 0.03 is decided at p < 0.005"),
        (0.1, 5, "n = 5, paired by seed): neither a difference nor equivalence"),
    ],
)
def test_what_is_decided_is_said(effect, n, said):
    row = only(planted(effect, n), margin=0.03)
    assert said in row["sentence"]
    assert math.isnan(row["p"]) == math.isnan(row["detectable"]) == (n < 6)
    assert (row["enough"] == 0) == ("neither" not in said)


def test_each_text_is_a_unit_and_levels_keep_their_names(tmp_path):
    runs = planted(0.02, n=3, texts=7).replace("mine", "None")
    more = pd.concat([runs, runs[runs["norm"] == "None"].assign(norm="NA")])
    more.to_csv(tmp_path / "runs.csv", index=False)
    table = normscope.compare(tmp_path / "runs.csv", text="text")
    assert table["level"].tolist() == ["None", "NA"]
    assert "n = 7, paired by seed, averaged per text, t-test" in table["sentence"][0]
    means = runs.groupby(["text", "norm"], as_index=False)["loss"].mean()
    is_mine = means.assign(norm=means["norm"] == "None")  # of bool
    expected = normscope.compare(is_mine, unit="text", baseline=False)
    numbers = ["n", "difference", "p", "within_p", "detectable", "enough"]
    pd.testing.assert_frame_equal(table.head(1)[numbers], expected[numbers])


def test_doubtful_runs_have_a_warning():
    runs, is_mine = planted(0.0), planted(0.0)["norm"] == "mine"
    assert only(runs)["warning"] == ""
    row = only(runs[(runs["seed"] > 1) & ~is_mine | (runs["seed"] != 5) & is_mine])
    assert "paired by seed, unpaired runs left out: 3, t-test" in row["sentence"]
    row = only(runs.assign(learning_rate=is_mine * (runs["seed"] % 2)))
    assert row["warning"].startswith("mine has 2 learning rates: if the best was chosen on")


RUNS = planted(0.0, n=3)[["norm", "seed", "loss"]]
FIRST = RUNS.index == 0
REFUSED = {
    r"value: runs has no column 'lost'; did you mean loss\?": (RUNS, {"value": "lost"}),
    r"rate: runs has no column 'lr'; known: norm, seed, loss": (RUNS, {"rate": "lr"}),
    r"by: runs has 2 columns 'norm'; rename": (pd.concat([RUNS, RUNS["norm"]], axis=1), {}),
    r"norm is no column of numbers": (RUNS, {"value": "norm"}),
    r"all differences between mine and layernorm are 0.5: give runs that the seed changes": (
        RUNS.assign(loss=0.5 * (RUNS["norm"] == "mine")),
        {},
    ),
    r"seed is empty in 1 runs": (RUNS.assign(seed=RUNS["seed"].mask(FIRST)), {}),
    r"loss of norm layernorm, seed 0 occurs twice: .*text": (pd.concat([RUNS, RUNS]), {}),
    r"mine and layernorm share 1 of the values of seed: an interval needs 2": (RUNS.head(3), {}),
    r"norm has the levels \['mine'\]: give": (RUNS[RUNS["norm"] == "mine"], {}),
    r"norm has the levels \[\]: give": (RUNS.head(0), {}),
    r"baseline: norm has no level 'mines'; did you mean mine\?": (RUNS, {"baseline": "mines"}),
    r"margin is 0: give": (RUNS, {"margin": 0}),
    r"runs: there is no file none.csv": ("none.csv", {}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_be_no_comparison_is_an_error(words):
    runs, arguments = REFUSED[words]
    with pytest.raises(normscope.Explained, match=words):
        normscope.compare(runs, **arguments)


@pytest.mark.parametrize("lost", ["NaN", "", "inf", "diverged"])
def test_a_diverged_run_is_an_error(lost, tmp_path):
    text = RUNS.to_csv(index=False).replace(str(RUNS["loss"][2]), lost)
    (tmp_path / "runs.csv").write_text(text)
    for runs in (str(tmp_path / "runs.csv"), pd.read_csv(tmp_path / "runs.csv")):
        with pytest.raises(
            normscope.Explained, match=r"of norm layernorm, seed 1 \(.*\) is no finite"
        ):
            normscope.compare(runs)
