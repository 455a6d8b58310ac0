"""Losses, measures, slopes and towers of the literature in tables."""

from typing import Any

import pandas as pd
from literature_recipes import literature_grid
from page_recipes import shown

from normscope.studies.literature.pages import section
from normscope.studies.literature.tables import MEASURES, TABLES
from normscope.studies.study import Settings

CELL = {"protocol": "small", "arm": "rmsnorm", "placement": "mix"}


def frame(name: str, *rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows).reindex(columns=TABLES[name].names)


def test_the_section_has_means_over_models_their_number_and_the_sizes_of_what_is_trained():
    cell = CELL | {"n": 2, "failed": 1, "rate": 0.003, "at_edge": True}
    slope = {"arm": "layernorm", "placement": "post"}
    tower = {"arm": "none", "causal": False}
    norm = CELL | {"norm": "final_norm", "place": 5}
    tables = {
        "cells": frame("cells", cell | {"mean": 2.5, "low": 2.4, "high": 2.6}),
        "chosen": frame(
            "chosen",
            CELL | {"seed": 1, "stream_growth": 2.0, "sink": 0.25, "sigma_growth": 1.0},
            CELL | {"seed": 2, "stream_growth": 4.0, "sink": 0.75},
        ),
        "norms": frame(
            "norms",
            norm | {"seed": 1, "frozen_loss": 0.5, "refined_loss": 0.25},
            norm | {"seed": 2, "frozen_loss": 1.0, "refined_loss": -0.5},
            norm | {"seed": 1, "norm": "blocks.0.mlp.before", "place": 2, "frozen_loss": 0.0},
        ),
        "slopes": frame(
            "slopes",
            slope | {"seed": 1, "change_slope": 1.0, "gradient_slope": -0.5},
            slope | {"seed": 2, "change_slope": 1.5, "gradient_slope": -0.25},
        ),
        "towers": frame("towers", tower | {"seed": 1, "collapse_rate": -0.25}),
    }
    part = section(literature_grid(), tables, Settings(level=0.9, baseline=[]))
    (losses,) = shown(part.tables["cells"])
    assert (losses["norm"], losses["placement"], losses["n"]) == ("RMSNorm", "mix", "2")
    assert "0.003" in losses["learning rate"]
    (measures,) = shown(part.tables["measures"])
    assert measures | {"n": "2", "stream": "3.000", "first": "0.500"} == measures
    # known in one model, in none
    assert (measures["sigma"], measures["score"]) == ("1.000, n = 1", "–")
    final, other = shown(part.tables["norms"])
    assert [*final.values()] == ["small", "RMSNorm", "mix", "final_norm", "2", "+0.750", "−0.125"]
    assert (other["layer"], other["n"]) == ("blocks.0.mlp.before", "1")
    (slopes,) = shown(part.tables["slopes"])
    assert slopes | {"n": "2", "output change": "1.250", "last gradient": "−0.375"} == slopes
    (towers,) = shown(part.tables["towers"])
    assert [*towers.values()] == ["No norm", "no", "1", "−0.250"]
    assert [protocol["name"] for protocol in part.words["protocols"]] == ["small", "qk"]
    assert part.words["measures"].keys() == {column.name for column in MEASURES}
