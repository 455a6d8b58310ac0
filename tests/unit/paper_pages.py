"""The tables of all parts on disk, and the rules that make the paper of them, for tests."""

import json
from pathlib import Path
from typing import Any

import depth_pages
import pandas as pd
from jacobian_evidence import GRID, layers, picked
from jacobian_evidence import models as of_surrogates
from pretrained_claimed import DATA, model, published
from pretrained_claimed import tables as of_models
from pretrained_evidence import run
from test_jacobian_summary import correlations, cost, costs
from test_pretrained_summary import FACTS, GONE, gains_of_runs, models, runs
from test_summary import row as arm_row

from normscope.io.csvfile import write_csv
from normscope.io.files import write_json
from normscope.nn.recipe import Model
from normscope.studies.jacobian.tables import ANY, by_layer
from normscope.studies.main.pages import FIGURES
from normscope.studies.recall.grid import Recall
from normscope.studies.recall.measures import HEIGHTS, MEASURES
from normscope.studies.recall.tables import by_cell
from normscope.train.recipe import Training

TEMPLATE = DATA.parent / "workflow" / "report" / "summary.md"
ARMS = ["layernorm", "batchnorm", "manual_l2", "none"]
CROSSED = [*ARMS, "layernorm_plain", "manual_l2_affine"]
SEEDS = 6
BEST = ["task", "arm", "rates", "best", "n", "loss", "accuracy", "at_edge"]
FACTORS = "response contrast kind n effect low high joint_low joint_high alpha".split()
GAINS = {f"{k}{end}": 1.0 for k in ("first", "later", "last") for end in ("", "_low", "_high")}
OF_GAIN = {"arm": "layernorm", "placement": "pre", "n": 2}
SIZES = {"entities": 4, "attributes": 4, "steps": 5}
RECALL = Recall.model_validate(
    {
        "tasks": {kind: {"kind": kind, **SIZES} for kind in ("copy", "recall")},
        "published": {
            "task": "copy",
            "arms": [{"arm": arm, "learning_rate": 0.0001} for arm in ARMS],
            "seeds": [1],
        },
        "corrected": {"task": "recall", "learning_rate": 0.001},
        "runs": [
            {
                "task": "recall",
                "arms": CROSSED,
                "learning_rates": [0.001],
                "seeds": list(range(SEEDS)),
            }
        ],
        "directions": 1,
    },
    strict=True,
)


def recall_runs() -> pd.DataFrame:
    """recall.csv: one seed of the published protocol, six of the corrected one."""
    rows: list[dict[str, Any]] = []
    there = [("copy", arm, 0.0001, 1) for arm in ARMS]
    there += [("recall", arm, 0.001, SEEDS) for arm in CROSSED]
    for task, arm, rate, n in there:
        for seed in range(n):
            row: dict[str, Any] = {"task": task, "arm": arm, "learning_rate": rate, "seed": seed}
            rows.append(row | dict.fromkeys((*MEASURES, *HEIGHTS), 1.0) | {"diverged_at": None})
    return pd.DataFrame(rows)


def backward() -> dict[str, pd.DataFrame]:
    """The tables of the norms' backward pass."""
    of_layers = layers()
    return {
        "layers": of_layers,
        "layers_by_cell": by_layer(of_layers, 0.95),
        "chosen": picked(),
        "costs": costs(cost()),
        "expected": of_surrogates({"softmax fa center_scale all": [0.5] * SEEDS}),
        "predictions": correlations(("center_scale", "all"), (ANY, ANY)),
    }


def write(root: Path) -> Path:
    """All that rules claims and frame read."""
    recall = recall_runs()
    arms = [arm_row(), arm_row(arm="rmsnorm", mean=1.8, low=1.75, high=1.85)]
    of = {"arms": pd.DataFrame(arms), "gain_by_arm": pd.DataFrame([GAINS | OF_GAIN])}
    of |= {"recall": recall, "recall_cells": by_cell(recall, 0.95)}
    of |= {"recall_best": pd.DataFrame(columns=BEST), "gain": gains_of_runs(SEEDS)}
    of |= {"factors": pd.DataFrame(columns=FACTORS)}
    of |= {"runs": runs(SEEDS).assign(val_loss=1.9, val_loss_window_sd=0.2)}
    of = {f"tables/{name}": table for name, table in of.items()}
    of |= {f"jacobian/{name}": table for name, table in backward().items()}
    measured = of_models([*published(), model("opt-125m", 0.1)])
    of |= {f"pretrained/{name}": table for name, table in measured.items()}
    of |= {"pretrained/models": models(FACTS, GONE)}
    for name, table in of.items():
        write_csv(root / f"{name}.csv", table)
    (root / "figures").mkdir()
    for name in FIGURES:
        (root / "figures" / f"{name}.txt").write_text(f"Caption of {name}.\n")
    depth_pages.write(root)
    config = json.loads((DATA / "nanogpt_cpu.json").read_text())
    training = config["training"] | {"eval_every": 1, "precision": "fp32"}
    needed = {k for k, field in Training.model_fields.items() if field.is_required()}
    training = dict.fromkeys(needed, 1) | training
    settings = {
        "model": Model.model_validate(config["model"]).model_dump(),
        "training": Training.model_validate(training).model_dump(),
    }
    write_json(root / "config.json", settings)
    meta = {"sha256": {"train.bin": "0"}, "vocab_size": 65, "train_tokens": 9, "val_tokens": 2}
    write_json(root / "meta.json", meta)
    return root


def _of_parts(root: Path) -> list[object]:
    words: list[object] = ["--tables", root / "tables", "--recall", RECALL.model_dump_json()]
    words += ["--jacobian", root / "jacobian", "--grid", GRID.model_dump_json()]
    words += ["--depth", root / "depth", "--depth-grid", depth_pages.grid()]
    words += ["--textbook", root / "textbook", "--pretrained", root / "pretrained"]
    return [*words, "--margin-sds", 2, "--level", 0.95]


def judge(root: Path, claims: Path = DATA / "claims.yaml") -> dict[str, Any]:
    """Rule claims."""
    words = [*_of_parts(root), "--claims", claims, "--references", DATA / "reference_gains.csv"]
    run("claims", [*words, "--out", root / "claims.json"])
    return json.loads((root / "claims.json").read_text())


def collect(root: Path) -> dict[str, Any]:
    """Rule frame."""
    words = [*_of_parts(root), "--claims", root / "claims.json", "--figures", root / "figures"]
    words += ["--published", DATA / "published.csv", "--references", DATA / "nanogpt_cpu.json"]
    words += ["--dataset", root / "meta.json", "--config", root / "config.json"]
    run("frame", [*words, "--baseline", "layernorm-pre", "--out", root / "frame.json"])
    return json.loads((root / "frame.json").read_text())


def print_page(root: Path, template: Path = TEMPLATE) -> str:
    """Rule summary."""
    words = ["--frame", root / "frame.json", "--template", template]
    run("summary", [*words, "--out", root / "summary.md"])
    return (root / "summary.md").read_text()
