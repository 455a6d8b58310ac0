"""A norm in a user's file: trained, measured and shown like any other, and by itself alone."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import Project

import normscope
from normscope.errors import Explained

CODE = """
import torch
from torch import nn

class MyNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x):  # by the mean length of a channel
        return self.gain * x / (x.abs().mean(-1, keepdim=True) + 1e-5)
"""
TARGETS = ("main", "results/depth/tables/by_shape.csv")
TORCHS = {"module": "torch.nn:LayerNorm", "label": "torch's LayerNorm"}


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    """The made project with two custom arms, in a configuration file of another folder."""
    project = made.copy(tmp_path / "project")
    (project.root / "mine").mkdir()
    (project.root / "mine/my_norm.py").write_text(CODE)
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    block = {"protocol": "small", "placements": ["pre"], "learning_rates": [0.003], "seeds": [1]}
    depth = config["depth"]
    depth["start"][0]["arms"].append("mine")
    arms = {"mine": {"module": "my_norm.py:MyNorm", "label": "My norm"}, "torchs": TORCHS}
    runs = [*config["main"]["runs"], block | {"arms": ["mine", "torchs", "layernorm"]}]
    choices = {"arms": arms, "main": {"runs": runs}, "depth": depth}
    (project.root / "mine/choices.yaml").write_text(yaml.safe_dump(choices, sort_keys=False))
    return project


def test_a_norm_in_a_file(project: Project):
    choices = ("--configfile", "mine/choices.yaml")
    project.snakemake(*TARGETS, *choices)
    results = project.root / "results"
    runs = pd.read_csv(results / "main/tables/runs.csv")
    small = runs.query("protocol == 'small' and seed == 1 and learning_rate == 0.003")
    losses = dict(zip(small["arm"], small["val_loss"], strict=True))
    assert losses["mine"] > 0
    # torch's LayerNorm as a custom norm is the built-in one, to the last digit
    assert losses["torchs"] == losses["layernorm"]
    assert "mine" in set(pd.read_csv(results / "depth/tables/by_shape.csv")["arm"])

    name = "main.small-mine-pre-0.003-1"
    with pytest.raises(Explained, match=r"code of its own, my_norm\.py:MyNorm .*give norm=MyNorm"):
        normscope.load(name, results=results)
    space: dict = {}
    exec(CODE, space)
    model = normscope.load(name, results=results, norm=space["MyNorm"])
    assert type(model.get_submodule("final_norm.inner")) is space["MyNorm"]

    file = project.root / "mine/my_norm.py"
    file.write_text(CODE.replace("# by", "# divides by"))
    assert project.planned(*TARGETS, *choices) == {}
    file.write_text(CODE.replace("1e-5", "1e-4"))
    planned = project.planned("results/main/tables/runs.csv", *choices)
    assert planned == {"main_train": 1, "main_tables": 1}

    file.write_text(CODE.replace("self.gain * x", "x"))
    output = project.snakemake("-n", *choices, ok=False)
    assert "arms.mine: my_norm.py:MyNorm: gain gets no gradient: use it, or remove it" in output
    assert "Traceback" not in output
