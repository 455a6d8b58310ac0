"""The script's statements: planted models under which each holds or fails, with p by scipy."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
from jacobian_recipes import LAYERS, cell, frame, layer
from readings import finding, judgement_on
from statements import CONFIG

from normscope.studies.jacobian.tabulate import by_place

Planted = tuple[Mapping[str, Any], Mapping[str, Any]]  # where, and measures
P, C = CONFIG.jacobian.published, CONFIG.jacobian.corrected
NAMES = ("blocks.0.attention.before", "blocks.0.mlp.before", "final_norm")
# cos = sqrt((1 - 0.1 - r)/0.9): 0.96 and 0.98
SHARES: Sequence[Planted] = (
    ({}, {"r_mean": 0.1, "error_identity": 1e-16, "error_without_gain": 1e-12, "d": 64}),
    ({}, {"error_closed_form": 1e-16}),
    ({}, {"alignment": 0.99}),
    ({"attention": "softmax"}, {"r_radial": 0.07056, "cos_center_scale": 0.96}),
    ({"attention": "sigmoid"}, {"r_radial": 0.03564, "cos_center_scale": 0.98}),
)


def layers(*planted: Planted, now: int = 6) -> dict[str, pd.DataFrame]:
    """Tables of exact models, one as published and some as corrected; later plants win."""
    rows, chosen = [], []
    for (protocol, n), attention in itertools.product(((P, 1), (C, now)), ("softmax", "sigmoid")):
        key = {"protocol": protocol, "attention": attention, "learning_rate": 0.1}
        chosen += [cell(**key) | {"seed": seed, "diverged": False} for seed in range(n)]
        for seed, variant, (index, name) in itertools.product(
            range(n), ("published", "corrected"), enumerate(NAMES)
        ):
            row = layer(seed, name, {}, variant=variant, index=index, **key)
            for where, values in (*SHARES, *planted):
                if all(row[k] == v for k, v in where.items()):
                    row |= {k: v[seed] if isinstance(v, list) else v for k, v in values.items()}
            rows.append(row)
    tables = {"layers": frame(rows, LAYERS), "chosen": pd.DataFrame(chosen)}
    tables["by_place"] = by_place(tables["layers"], tables["chosen"])
    return {f"jacobian.{name}": table for name, table in tables.items()}


ONE = {"protocol": C, "layer": NAMES[1], "attention": "sigmoid", "variant": "corrected"}


@pytest.mark.parametrize(
    ("key", "reading", "where", "wrong"),
    [
        ("formula_is_exact", "at_the_output", ONE, {"error_without_gain": 2e-9}),
        ("formula_is_exact", "before_the_gain", ONE, {"error_closed_form": 2e-9}),
        ("shares_give_cosines", "every_layer", ONE, {"cos_center_scale": 0.9811}),
        # a mean over the two block norms
        ("signal_is_gradient", "every_model", ONE | {"attention": "softmax"}, {"alignment": 0.8}),
    ],
)
def test_a_fact_fails_by_one_layer_of_one_model(key, reading, where, wrong):
    def answers(*planted: Planted) -> tuple[str, str]:
        found = finding(key, reading, layers(*planted, now=1))
        return found.answer, found.its_verdict

    assert answers() == ("holds", "holds")
    assert answers((where, wrong)) == ("fails", "holds")
    assert answers(({"protocol": P}, wrong)) == ("holds", "fails")
    none = {name: table[:0] for name, table in layers().items()}
    assert finding(key, reading, none).answer == "no data"


def test_the_formula_depends_on_the_gradient_that_is_meant():
    """It leaves out the gain, which the gradient before it contains."""
    tables = layers((ONE, {"error_without_gain": 0.3}), now=1)
    assert judgement_on("formula_is_exact", tables).verdict == "depends"
