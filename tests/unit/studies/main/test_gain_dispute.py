"""Two papers that contradict each other about gains, judged on the same planted models."""

import json

import numpy as np
import pandas as pd
import pytest
from readings import finding, statement
from statements import CLAIMS, evidence

from normscope.ledger.entry import Claims
from normscope.ledger.frozen import Plan
from normscope.ledger.judgement import find_all, judge
from normscope.ledger.record import ledger
from normscope.studies.statements import digests_of

PAPERS = ("adanorm", "scale_vectors")
ONE, OTHER = "bias_and_gain_do_not_work", "removing_gain_degrades"
PROTOCOLS = ("nanogpt", "small", "small_long", "small_austen")
ARMS = ("layernorm", "layernorm_plain", "layernorm_bias", "rmsnorm", "rmsnorm_plain")
NOISE = 0.004 * np.array([0.3, -1.2, 0.9, -0.4, 1.1, -0.8, 0.6, -0.5])  # of a pair, by seed


def models(cost: float, **of_protocol: float) -> dict[str, pd.DataFrame]:
    """Eight seeds of each cell; leaving out what is learned raises the loss by ``cost``."""
    rows = [
        {"protocol": protocol, "arm": arm, "placement": "pre", "seed": seed}
        | {"capped_loss": 2 + seed / 7 + off, "failed": 0}
        | {"folding_blocks": 1e-15, "folding_all": 1e-15}
        for protocol in PROTOCOLS
        for arm in ARMS
        for seed, noise in enumerate(NOISE)
        for off in [(of_protocol.get(protocol, cost) + noise) * arm.endswith(("plain", "bias"))]
    ]
    return {"main.chosen": pd.DataFrame(rows)}


def written(tables: dict[str, pd.DataFrame]) -> dict:
    """claims.json of what the two papers say of the models of the main study."""
    documents = {name: CLAIMS.documents[name] for name in PAPERS}
    of_main = {
        name: document.model_copy(
            update={"statements": {k: e for k, e in document.claims.items() if e.study == "main"}}
        )
        for name, document in documents.items()
    }
    claims = Claims(of_main)
    judged = judge(find_all(claims, evidence(tables)), 0.05)
    made = ledger(claims, judged, 0.95, Plan(digests_of(claims)))
    return json.loads(json.dumps(made, allow_nan=False))


@pytest.mark.parametrize(
    ("cost", "verdicts"),
    [
        (-0.03, ("holds", "fails", "holds")),
        (0.0, ("holds", "fails", "undecided")),  # that there are such data cannot be refuted
        (0.009, ("undecided", "undecided", "undecided")),  # a main claim is open
        (0.03, ("fails", "holds", "undecided")),
    ],
)
def test_the_same_models_decide_both_sides_of_the_dispute(cost, verdicts):
    made = written(models(cost))
    claims = {claim["key"]: claim for claim in made["claims"]}
    assert tuple(claims[key]["verdict"] for key in (ONE, OTHER, "simple_outperforms")) == verdicts
    (dispute,) = made["disputes"]
    assert dispute["statements"] == [ONE, OTHER]
    ends = ("", "_nanogpt", "_longer", "_other_text")
    assert [one["readings"] for one in dispute["shared"]] == [
        [f"layernorm{end}", f"gain_and_bias{end}"] for end in ends
    ]
    for one in dispute["shared"]:
        assert one["effect"] == pytest.approx(cost, abs=1e-9)
        assert one["reads"][0] != one["reads"][1] or "undecided" in verdicts[:2]


def test_no_models_support_both():
    for cost in np.linspace(-0.05, 0.05, 41):
        tables = models(cost)
        for end in ("", "_nanogpt"):
            names = {ONE: f"layernorm{end}", OTHER: f"gain_and_bias{end}"}
            answers = {finding(key, name, tables).answer for key, name in names.items()}
            assert answers != {"holds"}, (cost, end)


def test_other_results_after_longer_training_make_both_depend():
    claims = {c["key"]: c["verdict"] for c in written(models(0.05, small_long=-0.05))["claims"]}
    assert (claims[ONE], claims[OTHER]) == ("depends", "depends")


@pytest.mark.parametrize(
    ("column", "reading"), [("folding_blocks", "blocks"), ("folding_all", "final_norm")]
)
@pytest.mark.parametrize("arm", ["rmsnorm", "layernorm"])
def test_one_model_whose_logits_change_refutes_that_gains_add_no_expressivity(column, reading, arm):
    tables = models(0.0)
    key = "gain_adds_no_expressivity"
    found = statement(key, tables).findings
    assert {name: f.answer for name, f in found.items()} == dict.fromkeys(found, "holds")
    table = tables["main.chosen"]
    is_one = (table["arm"] == arm) & (table["protocol"] == "small") & (table["seed"] == 3)
    table.loc[is_one, column] = 1e-6
    assert finding(key, reading, tables).answer == "fails"
