"""A norm in a user's file: its card, and a study that trains it next to the others."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import Project, stats

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
TRAININGS = 3  # of a norm in the demonstration: regimes short, long and deep


def card(project: Project, *norms: str, flags: tuple[str, ...] = ()) -> str:
    config = json.dumps({"norm": list(norms), "budget": "demo"})
    return project.snakemake("card", *flags, "--config", f"card={config}")


def planned(project: Project, *norms: str) -> dict[str, int]:
    return stats(card(project, *norms, flags=("-n",)))


def test_a_card_from_an_empty_folder(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    path = project.root / "src/normscope/studies/card/budgets.yaml"
    budgets = yaml.safe_load(path.read_text())
    for regime in budgets["demo"].values():
        regime |= {"steps": 8, "warmup_steps": 1, "n_embd": 16}
    path.write_text(yaml.safe_dump(budgets))
    norm = project.root / "my_norm.py"
    norm.write_text(CODE)
    mine = "my_norm.py:MyNorm"
    output = card(project, mine)
    assert re.search(r"^Trains MyNorm, LayerNorm: \d+ jobs, about ", output, re.MULTILINE)

    page = project.root / "results/card/my_norm"
    content = json.loads((page / "card.json").read_text())
    assert content["answer"] in output  # the run ends with what was found
    assert "MyNorm" in content["answer"]
    assert content["answer"] in (page / "card.html").read_text()

    norm.write_text(CODE.replace("x.abs()", "(x.abs())  # of absolute values\n            "))
    assert not planned(project, mine)
    norm.write_text(CODE.replace("1e-5", "1e-3"))
    again = planned(project, mine)
    assert again["card_train"] == TRAININGS
    assert again["card_probe"] == 1


def test_make_passes_a_norm_on_as_one_word(made: Project, tmp_path: Path):
    """Whatever its path has in it; nothing of it is a command of the shell or of make."""
    project = made.copy(tmp_path / "project")
    (ready,) = re.findall(r"^READY := (.+)$", project.run("make", "-pn", "clean"), re.MULTILINE)
    path = 'it\'s  "my" norms;touch a;$(touch b)`touch c`$(shell touch d){e}\\n.py'
    output = project.run("make", "-o", ready, "card", f"NORM=dyt {path}:N", ok=False)
    assert f"there is no file {path} in" in output
    assert not {path.name for path in project.root.iterdir()} & {*"abcd"}


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
