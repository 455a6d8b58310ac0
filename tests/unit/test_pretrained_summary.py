"""Residual gain in tables of the summary: what they show, what is missing, and the template."""

import math
import re
from string import Formatter
from typing import Any

import pandas as pd
import pytest
from pretrained_claimed import (
    DATA,
    ENTRIES,
    EQUAL,
    REFERENCES,
    TWIN,
    cells,
    compared,
    frame,
    model,
    published,
    studies,
)
from pretrained_claimed import tables as of_paper

from normscope.ledger.claim import Claim
from normscope.nn.recipe import Model
from normscope.paper.words import markdown
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.claims import claims
from normscope.studies.pretrained.measures import METRICS
from normscope.studies.pretrained.pages import (
    entropy_table,
    evidence,
    gain_table,
    h25_table,
    model_table,
    norm_table,
    section,
    sensitivity_table,
    twin_table,
)
from normscope.studies.pretrained.tables import by_model
from normscope.train.recipe import Training

NAN = math.nan
TEMPLATE = (DATA.parent / "workflow" / "report" / "summary.md").read_text()
FACTS: dict[str, Any] = {"model": "opt-125m", "family": "OPT", "base": NAN, "class": "Made"}
FACTS |= {"norm": "LayerNorm", "n_layers": 12, "n_embd": 768, "n_heads": 12, "n_kv_heads": 12}
FACTS |= {"grouped_queries": False, "head_dim": 64, "rho": 0.1875, "rho_as_published": 0.1875}
FACTS |= {"parameters": 125239296, "stored": "F16", "computed": "fp32", "streamed": False}
FACTS |= {"device": "cpu", "threads": 2, "source": "hub facebook/opt-125m", "commit": "27dcfa7"}
FACTS |= {"tokenizer_adds_bos": True, "missing": NAN}
GONE = dict.fromkeys(FACTS, NAN) | {"model": "gone", "family": "G", "missing": "no network"}


def models(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(rows, FACTS)


def gains(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame([*published(), *rows], model("", 0))


def is_whole(table: pd.DataFrame) -> bool:
    """No cell is empty or says nan."""
    text = table.astype(str)
    return not text.map(lambda cell: cell == "" or "nan" in cell.lower()).any(axis=None)


def test_a_model_is_told_in_words():
    (row,) = model_table(models(FACTS)).to_dict("records")
    assert row == {
        "model": "opt-125m",
        "family": "OPT",
        "is": "LayerNorm, 12 blocks, width 768, 12 heads of 64, rho 0.1875; 125 million "
        "parameters, stored as F16, computed in fp32; tokenizer puts BOS; hub facebook/opt-125m, "
        "commit 27dcfa7",
    }


def test_grouped_queries_streaming_and_what_is_not_there_are_told():
    changes = {"grouped_queries": True, "n_kv_heads": 4, "streamed": True, "commit": NAN}
    (row,) = model_table(models(FACTS | changes | {"tokenizer_adds_bos": False})).to_dict("records")
    assert "12 heads of 64, 4 for keys, rho" in row["is"]
    assert "computed in fp32, streamed; tokenizer puts no BOS" in row["is"]
    assert row["is"].endswith("hub facebook/opt-125m")


def test_missing_models_are_named_with_their_reasons_among_the_others(tmp_path):
    """Whole numbers are read as fractions beside what is missing."""
    models(GONE, FACTS, GONE | {"model": "gated"}).to_csv(tmp_path / "models.csv", index=False)
    table = model_table(pd.read_csv(tmp_path / "models.csv"))
    assert table["model"].tolist() == ["gone", "opt-125m", "gated"]
    assert table["is"].tolist()[::2] == ["not measured: no network"] * 2
    assert "12 blocks, width 768" in table["is"][1]
    assert "125 million" in table["is"][1]
    assert is_whole(table)


@pytest.mark.parametrize("reason", ["a | b", "||", "first line\nsecond line"])
def test_a_reason_with_pipes_or_lines_does_not_break_the_table(reason):
    lines = markdown(model_table(models(FACTS, GONE | {"missing": reason}))).split("\n")
    assert len(lines) == 2 + 2
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3 + 1}


def test_a_gain_is_as_published_then_corrected():
    one = {"mean": 1.25, "t": 3.841, "log_gain": math.log(1.2), "low": 0.0, "high": math.log(1.5)}
    rows = gain_table(gains(model("a", 0.1) | one))
    assert len(rows) == 7 + 1
    assert rows.iloc[-1].to_dict() == {
        "study": "measured",
        "model": "a",
        "norm": "LayerNorm",
        "dtype": "fp32",
        "n prompts": 25,
        "mean": "1.2500",
        "sd": "0.050",
        "t against 1": "+3.84",
        "by the published rule": "REJECTED",
        "geometric mean": "1.2000",
        "interval": "[1.000, 1.500]",
        "reads": "above 1",
    }


@pytest.mark.parametrize("table", [gain_table, entropy_table])
def test_published_numbers_have_a_row_a_study_and_model_and_no_nan(table, tmp_path):
    studies()[1].to_csv(tmp_path / "by_model.csv", index=False)
    found = table(pd.read_csv(tmp_path / "by_model.csv"))
    there = REFERENCES[REFERENCES["metric"] == "last_gain"]
    keys = list(zip(there["experiment"], there["model"], strict=True))
    assert sorted(zip(found["study"], found["model"], strict=True)) == sorted(keys)
    assert len(found) == 14
    assert is_whole(found)


def test_one_prompt_leaves_dashes(tmp_path):
    observations = pd.DataFrame(
        [["measured", "a", "A", "LayerNorm", "fp32", "Novel", "a b", 2, 1.5, 1.25]],
        columns="experiment model family norm dtype category prompt words entropy gain".split(),
    )
    by_model(observations, 0.95, 99).to_csv(tmp_path / "by_model.csv", index=False)
    table = pd.read_csv(tmp_path / "by_model.csv")
    (row,) = gain_table(table).to_dict("records")
    assert (row["mean"], row["geometric mean"]) == ("1.2500", "1.2500")
    assert {row[k] for k in ("sd", "t against 1", "interval", "reads")} == {"–"}
    (row,) = entropy_table(table).to_dict("records")
    assert set(row.values()) == {"a", "measured", "–"}


def test_norms_are_a_row_a_comparison_and_unit_with_dashes_where_there_is_no_test():
    none = dict.fromkeys(("difference", "low", "high", "prompts", "p", "smallest"), NAN)
    found = norm_table(frame([compared(), compared(**none)], compared())).to_dict("records")
    assert [r["p"] for r in found] == ["0.010", "–"]
    assert found[0]["difference of log-gains"] == "+0.400"
    assert found[0]["interval over prompts"] == "[+0.300, +0.500]"
    assert {found[1][k] for k in ("difference of log-gains", "interval over prompts")} == {"–"}
    assert found[1]["smallest p"] == "–"


def test_twins_stand_with_their_factor():
    (row,) = twin_table(frame([TWIN], TWIN)).to_dict("records")
    assert (row["mean gains"], row["factor"]) == ("2.000 to 1.000", "0.500")
    assert (row["interval"], row["Holm p"]) == ("[0.250, 1.000]", "< 0.000001")


def test_h25_is_a_row_a_study_and_metric_without_nan(tmp_path):
    of = h25.accuracy(h25.published_models(REFERENCES, 0.95), 0.95)
    of.to_csv(tmp_path / "h25.csv", index=False)
    found = h25_table(pd.read_csv(tmp_path / "h25.csv"))
    assert len(found) == len(of)
    assert is_whole(found)
    (row,) = found[found["study"] == "h25"].to_dict("records")
    assert (row["models (families)"], row["right"]) == ("16 (7)", 7)
    assert (row["by the published rule"], row["share"]) == ("FALSIFIED", "0.44 [0.20, 0.70]")


def test_cells_of_sensitivity_have_a_dash_where_nothing_was_measured(tmp_path):
    table = frame([*cells("a"), *cells("b", bos=("off", "on"))], cells("")[0])
    lost = (table["model"] == "a") & (table["metric"] == "gain_with_final_norm")
    table.loc[lost, ["n", "log_gain", "low", "high", "reads"]] = NAN
    table.to_csv(tmp_path / "sensitivity.csv", index=False)
    found = sensitivity_table(pd.read_csv(tmp_path / "sensitivity.csv"))
    assert len(found) == 2 * len(METRICS)
    assert is_whole(found)
    of_a = found[found["model"] == "a"].set_index("gain")
    assert set(of_a.loc[:, "BOS, first":"BOS, last"].to_numpy().ravel()) == {"–"}
    assert set(of_a.loc["final norm / penultimate block"].drop("model")) == {"–"}
    # exp 0.1 is 1.105
    assert of_a.loc["last block", "no BOS, last"] == "1.11, above 1"


TRAINED = [("layernorm", "pre"), ("rmsnorm", "pre"), ("rmsnorm", "post"), ("dyt", "pre")]


def gains_of_runs(n: int, gain: float = 0.1) -> pd.DataFrame:
    """gain.csv of two blocks: RMSNorm's last one, pre, gains more; all else is a distraction."""
    rows = []
    for arm, placement in TRAINED:
        for seed in range(n):
            more = gain * (arm == "rmsnorm") if placement == "pre" else -9.0
            key = {"arm": arm, "placement": placement, "seed": seed}
            for position in (0, 1, 2):
                values = {"embedding": NAN, "block_0": -7.0, "block_1": 0.2 + more}
                values |= {"final_norm": -8.0}
                if position == 0:
                    values["block_1"] = -9.0
                for depth, (site, value) in enumerate(values.items()):
                    at = {"site": site, "depth": depth, "position": position}
                    rows.append(key | at | {"log_gain": value})
    return pd.DataFrame(rows)


def runs(n: int, *lost: tuple[str, str, int]) -> pd.DataFrame:
    rows = [
        {"arm": arm, "placement": placement, "seed": seed}
        | {"diverged_at": 7.0 if (arm, placement, seed) in lost else NAN}
        for arm, placement in TRAINED
        for seed in range(n)
    ]
    return pd.DataFrame(rows)


def tables(**changes: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = of_paper([*published(), model("opt-125m", 0.1)])
    return found | {"models": models(FACTS, GONE)} | changes


def whole(of: dict[str, pd.DataFrame] | None = None) -> dict[str, str]:
    """The words of the section, and its tables by the template's names, in Markdown."""
    found = section(of or tables())
    places = re.findall(PLACE, part().format(**found.texts))
    of_claims = {"claims_pretrained"}  # of the ledger, not of the section
    shown = {name: markdown(found.tables[name]) for name in places if name not in of_claims}
    return shown | {name: str(text) for name, text in found.rendered().items()}


PLACE = r"\[\[table (\w+)\]\]"


def part() -> str:
    _, _, after = TEMPLATE.partition("## Residual gain of pretrained models")
    found, _, _ = after.partition("## Figures")
    assert len(found) > 1000
    return found


def test_the_section_has_the_names_of_the_template_and_no_other():
    names = {name for _, name, _, _ in Formatter().parse(part()) if name}
    found = section(tables())
    assert set(found.texts) == names
    assert not names & {*Model.model_fields, *Training.model_fields}
    places = re.findall(PLACE, part().format(**found.texts))
    assert len(places) == len(set(places)) > 5
    assert set(places) == {*found.tables, "claims_pretrained"}


def test_every_row_of_a_table_has_the_columns_of_its_header():
    of = whole()
    assert len(of) == 7 + 2
    assert "opt-125m" in of["pretrained_models"]
    for name, text in of.items():
        lines = text.splitlines()
        assert len(lines) > 2, name
        assert len({line.count("|") for line in lines}) == 1, name
        assert not re.search(r"\bnan\b", text, re.IGNORECASE), name


def equal(n: int = 6, *lost: Any) -> Claim:
    """What the trained models say."""
    found = claims(
        evidence(
            tables(), REFERENCES, gains_of_runs(n), runs(n, *lost), entries=ENTRIES, level=0.95
        )
    )
    assert "differ in nothing else" in found[EQUAL].claim
    return found[EQUAL]


def test_trained_pairs_are_of_the_last_block_of_pre_norm_models_after_the_first_position():
    six = ", ".join(["+0.100"] * 6)
    found = equal()
    assert (found.corrected, found.verdict) == (f"by seed: {six}.", "holds")
    (case,) = found.cases.values()
    # six alike of one sign: 1 of 64 flips, and no spread; all else would have another mean
    assert (case.n, case.p_holds) == (6, 1 / 64)
    assert case.effect == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("lost", "reads"),
    [
        (("rmsnorm", "pre", 2), "undecided: runs diverged, and the others are a selection"),
        (("layernorm", "pre", 2), "undecided: runs diverged, and the others are a selection"),
        (("rmsnorm", "post", 2), "holds"),
        (("dyt", "pre", 2), "holds"),
    ],
)
def test_a_diverged_run_of_either_arm_leaves_a_selection(lost, reads):
    found = equal(6, lost)
    assert found.verdict == reads
    assert found.corrected.count("+0.100") == 6 - ("undecided" in reads)


def test_too_few_trained_pairs_decide_nothing():
    assert equal(5).verdict == "undecided: 5 seeds, 6 needed"


def test_with_nothing_measured_the_section_says_so_and_keeps_the_published(tmp_path):
    """As the workflow writes and reads it."""
    of = tables(by_model=gains())
    for name in ("models", "sensitivity", "twins"):
        of[name] = of[name][:0]
    for name, table in of.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    read = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in of}
    found = whole(read)
    assert found["pretrained_models"] == "No model was measured."
    assert found["pretrained_sensitivity"] == "No model was measured."
    assert not {"models", "sensitivity"} & set(found)
    assert len(found["pretrained"].splitlines()) == 2 + 7
    judged = claims(
        evidence(read, REFERENCES, gains_of_runs(6), runs(6), entries=ENTRIES, level=0.95)
    )
    assert "opt-125m" not in repr(judged)
    assert len(judged) == 8


def test_with_no_twins_the_page_says_none_and_not_nothing():
    """A table without a row has none of its columns either."""
    assert whole(tables(twins=frame([], TWIN)))["twins"] == "none"
