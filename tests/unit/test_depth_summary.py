"""The section of the summary: every name of its template, tables of what there is and is not."""

import math
import re
import string
from pathlib import Path

import pandas as pd
import pytest
from depth_evidence import (
    ENTRIES,
    KEPT,
    LEVEL,
    UNIGRAM,
    Row,
    frame_of_losses,
    frame_of_rates,
    losses,
    near,
    rate,
    rates_of,
)
from depth_recipes import depth_grid
from test_depth_textbook_claims import tables

from normscope.io.csvfile import write_csv
from normscope.ledger.claim import Claim
from normscope.paper.words import Section, markdown
from normscope.studies.depth.claims import Evidence
from normscope.studies.depth.pages import (
    claimed,
    rate_table,
    scratch_table,
    section,
    training_table,
)
from normscope.studies.depth.tables import RATES, by_shape, trainability

ROOT = Path(__file__).parents[2]
TEMPLATE = (ROOT / "workflow/report/summary.md").read_text()
SCRATCH = pd.DataFrame(
    [
        {"d": 1, "ratio": math.nan, "theory": 0.0, "error_forward": math.nan,
         "error_backward": math.nan, "error_ours": 0.0, "finite": False},
        {"d": 4, "ratio": 0.866, "theory": math.sqrt(3 / 4), "error_forward": 0.134,
         "error_backward": 0.25, "error_ours": 1e-16, "finite": True},
    ]
)  # fmt: skip


def measured(tmp_path, of_rates: list[Row], *of_losses: list[Row]) -> dict[str, pd.DataFrame]:
    """The tables as they are read from their files."""
    rates, trained = frame_of_rates(of_rates), frame_of_losses(*of_losses)
    made = {"rates": rates, "losses": trained}
    made |= {"by_shape": by_shape(rates, LEVEL), "trainability": trainability(trained, LEVEL)}
    for name, table in made.items():
        write_csv(tmp_path / f"{name}.csv", table)
    return {name: pd.read_csv(tmp_path / f"{name}.csv") for name in made}


def whole(tmp_path, of_rates: list[Row], *of_losses: list[Row], **grid) -> Section:
    depth = measured(tmp_path, of_rates, *of_losses)
    return section(depth_grid(**grid), depth, tables(scratch=SCRATCH))


def judged(tmp_path, of_rates: list[Row], *of_losses: list[Row], level=LEVEL) -> list[Claim]:
    """The statements, of tables that are read from their files."""
    depth = measured(tmp_path, of_rates, *of_losses)
    evidence = Evidence(depth["rates"], depth["losses"], KEPT, level, ENTRIES)
    return claimed(evidence, tables(scratch=SCRATCH))


def cells(table: pd.DataFrame) -> list[list[str]]:
    """Of a pipe table; every row as wide as its head."""
    rows = [line[2:-2].split(" | ") for line in markdown(table).splitlines()]
    assert len({len(row) for row in rows}) == 1
    return rows


def all_rates(**changes) -> list[Row]:
    """Every measure, 6 seeds."""
    values = near(0.8)
    return [rate(seed=s, **dict.fromkeys(RATES, v), **changes) for s, v in enumerate(values)]


def test_the_section_has_every_name_of_its_part_of_the_template(tmp_path):
    asked = {name for _, name, _, _ in string.Formatter().parse(TEMPLATE) if name}
    mine = {name for name in asked if name.startswith("depth_")}
    made = whole(tmp_path, all_rates(), losses(near(2.4)))
    assert set(made.texts) == mine
    for name in mine:
        assert f"{made.texts[name]}".strip()
    _, _, part = TEMPLATE.partition("## Residuals, depth and placement")
    part, _, _ = part.partition("## Residual gain of pretrained models")
    places = re.findall(r"\[\[table (\w+)\]\]", part)
    assert sorted(places) == sorted([*made.tables, "claims_tutorial"])
    assert not any(table.empty for table in made.tables.values())


def test_words_of_the_grid_are_its_numbers(tmp_path):
    made = whole(tmp_path, []).texts
    assert made["depth_sizes"] == "2 heads, width 8, context 8"
    assert made["depth_training"] == "6 steps of 3 windows, fp32"
    assert made["depth_tokens"] == "30"
    assert made["depth_kept"] == "learning rate 0.003, 2 steps of warm-up"
    assert (made["depth_windows"], made["depth_seeds"]) == (2, 6)
    assert whole(tmp_path, [], training__eval_tokens=None).texts["depth_tokens"] == "all"
    assert whole(tmp_path, [], training__eval_tokens=4096).texts["depth_tokens"] == "4,096"


def test_of_nothing_trained_and_nothing_probed_the_section_says_none(tmp_path):
    made = whole(tmp_path, [])
    for name in ("depth", "trainability"):
        assert markdown(made.tables[name]) == "none"
    found = judged(tmp_path, [])
    assert len(found) == 16
    assert [claim.verdict for claim in found].count("no data") == 5 + 5
    said = [(c.published, c.corrected, c.verdict, c.test) for c in found]
    shown = [markdown(table) for table in made.tables.values()]
    assert not re.search(r"\b(nan|None)\b", f"{said} {shown} {made.texts}")


def test_at_the_start_alone_it_works_too(tmp_path):
    made = whole(tmp_path, all_rates() + all_rates(residual=False))
    assert markdown(made.tables["trainability"]) == "none"
    assert len(cells(made.tables["depth"])) == 2 + 2


def test_every_statement_of_the_tutorial_is_judged_once(tmp_path):
    found = judged(tmp_path, all_rates(), losses(near(2.4)))
    of = [key for key, entry in ENTRIES.items() if entry.document == "tutorial"]
    assert [claim.key for claim in found] == of
    assert len(found) == len({claim.claim for claim in found}) == 16
    for claim in found:
        assert claim.entry == ENTRIES[claim.key]
        assert claim.own == ""


def of_network(table: pd.DataFrame) -> dict[str, str]:
    (row,) = table.to_dict("records")
    return {str(k): v for k, v in row.items()}


def test_a_network_has_its_rates_with_intervals(tmp_path):
    row = of_network(rate_table(measured(tmp_path, all_rates())["by_shape"]))
    assert (row["norm"], row["placement"], row["residual"]) == ("LayerNorm", "pre", "yes")
    assert (row["start"], row["blocks"], row["state"], row["n"]) == ("gpt2", "12", "start", "6")
    for name in ("gradient per block", "stream per block", "largest", "least singular value"):
        assert row[name].startswith(("0.800 [", "0.799 [", "0.7999 ["))
    assert of_network(
        rate_table(measured(tmp_path, all_rates(residual=False))["by_shape"])
    )["residual"] == "no"  # fmt: skip


def test_of_one_seed_there_is_no_interval_and_what_is_missing_is_a_dash(tmp_path):
    rows = rates_of("gradient_rate", [0.5]) + rates_of("smallest", [0.0], depth=4)
    deep, shallow = rate_table(measured(tmp_path, rows)["by_shape"]).to_dict("records")
    assert (deep["n"], deep["gradient per block"], deep["least singular value"]) == (
        "1", "0.500", "–"
    )  # fmt: skip
    assert (shallow["gradient per block"], shallow["least singular value"]) == ("–", "0")


def test_the_number_of_models_is_that_of_the_number_beside_it(tmp_path):
    """Of 6 models, 4 gradients vanished: their rates are of 2, not of what the stream is of."""
    kept, stream = [0.5, 0.6, 0.0, 0.0, 0.0, 0.0], near(1.1)
    rows = [
        rate(seed=s, gradient_kept=k, stream_rate=v)
        for s, (k, v) in enumerate(zip(kept, stream, strict=True))
    ]
    row = of_network(rate_table(measured(tmp_path, rows)["by_shape"]))
    beside = [row[k].split("]")[-1] for k in ("gradient, second to last", "stream per block")]
    assert {"2", "6"} <= set(re.findall(r"\d+", " ".join([row["n"], *beside])))


def test_a_schedule_has_its_loss_beside_that_of_frequencies(tmp_path):
    table = measured(tmp_path, [], losses([2.0, 2.2]), losses([2.0, None], warmup_steps=0))
    first, second = training_table(table["trainability"]).to_dict("records")
    assert (first["learning rate"], first["warm-up"], first["n"]) == ("0.001", "40", "2")
    assert (first["loss"], first["below frequencies"]) == ("2.100", f"+{UNIGRAM - 2.1:.3f}")
    assert first["interval"].startswith("[0.829")  # 2.1 - 12.706 x 0.1
    assert (second["n"], second["interval"]) == ("1, 1 diverged", "–")


def test_a_schedule_at_which_all_diverged_has_dashes(tmp_path):
    table = measured(tmp_path, [], losses([None, None]))
    (row,) = training_table(table["trainability"]).to_dict("records")
    assert (row["n"], row["loss"], row["below frequencies"]) == ("0, 2 diverged", "–", "–")


def test_the_class_from_scratch_is_beside_torchs():
    one, four = scratch_table(SCRATCH).to_dict("records")
    assert (one["output, ratio"], one["error"], one["finite"]) == ("–", "–", "no")
    assert (four["d"], four["output, ratio"], four["sqrt((d - 1)/d)"]) == ("4", "0.8660", "0.8660")
    assert (four["error"], four["error of the gradient"], four["finite"]) == (
        "0.134", "0.250", "yes"
    )  # fmt: skip


# t of one degree of freedom is tan(pi level / 2): 0.9 less 0.1 of it
@pytest.mark.parametrize(("level", "low"), [(0.9, "0.269"), (0.99, "−5.47")])
def test_intervals_of_the_statements_are_at_the_level(tmp_path, level, low):
    found = judged(tmp_path, rates_of("smallest", [0.8, 1.0]), level=level)
    (claim,) = [claim for claim in found if claim.key == "identity_path"]
    assert f"0.900 [{low}, " in claim.corrected
    (case,) = claim.cases.values()
    tangent = math.tan(math.pi * level / 2)
    assert case.low == pytest.approx(0.9 - 0.1 * tangent)
    assert case.high == pytest.approx(0.9 + 0.1 * tangent)
