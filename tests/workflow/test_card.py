"""The card of a norm in a file: from an empty folder, and again after changes."""

import json
import re
from pathlib import Path

import pytest
import torch
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

    def forward(self, x):
        return self.gain * x / (x.abs().mean(-1, keepdim=True) + 1e-5)
"""
TRAININGS = 3  # of a norm in the demonstration: regimes short, long and deep


def card(project: Project, *norms: str, flags: tuple[str, ...] = (), ok: bool = True) -> str:
    config = json.dumps({"norm": list(norms), "budget": "demo"})
    return project.snakemake("card", *flags, "--config", f"card={config}", ok=ok)


def planned(project: Project, *norms: str) -> dict[str, int]:
    output = card(project, *norms, flags=("-n",))
    lines = [line.split() for line in output.splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


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
    assert "too few seeds to decide anything" in card(project, mine)

    page = project.root / "results/card/my_norm"
    content = json.loads((page / "card.json").read_text())
    assert "MyNorm" in content["answer"]
    assert content["answer"] in (page / "card.html").read_text()

    norm.write_text(CODE.replace("x.abs()", "(x.abs())  # of absolute values\n            "))
    assert not planned(project, mine)
    norm.write_text(CODE.replace("1e-5", "1e-3"))
    again = planned(project, mine)
    assert again["card_train"] == TRAININGS
    assert again["card_probe"] == 1


def test_a_card_needs_a_norm(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    assert "name a norm: make card NORM=" in project.snakemake("card", "-n", ok=False)
    output = card(project, "missing.py:Norm", flags=("-n",), ok=False)
    assert "arms.norm: there is no file missing.py" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"norm": type("Local", (normscope.Explained,), {})}, "norm is of type type: give"),
        ({"norm": 3}, "norm is of type int: give str or a subclass of torch"),
        ({"norm": ["dyt", 3]}, "norm is of type list of int, str"),
        ({"norm": torch.nn.LayerNorm(4)}, "norm is of type LayerNorm"),
        ({"norm": []}, "norm is empty"),
        ({"norm": "dyt", "budget": "5 mn"}, "did you mean 5 min?"),
        ({"norm": "dyt", "budget": ["5 min"]}, "budget is of type list"),
        ({"norm": "dyt", "cores": 0}, "cores is 0"),
        ({"norm": "dyt", "folder": 3}, "folder is of type int"),
        ({"norm": "dyt", "folder": __file__}, "test_card.py: File exists"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, reason, tmp_path: Path):
    with pytest.raises(Explained, match=reason) as error:
        normscope.card(**{"folder": tmp_path, **arguments})
    assert "\n" not in str(error.value)


def test_make_passes_a_norm_on_as_one_word(made: Project, tmp_path: Path):
    """Whatever its path has in it; nothing of it is a command of the shell or of make."""
    project = made.copy(tmp_path / "project")
    (ready,) = re.findall(r"^READY := (.+)$", project.run("make", "-pn", "clean"), re.MULTILINE)
    path = 'it\'s  "my" norms;touch a;$(touch b)`touch c`$(shell touch d){e}\\n.py'
    output = project.run("make", "-o", ready, "card", f"NORM=dyt {path}:N", ok=False)
    assert f"there is no file {path} in" in output
    assert not {path.name for path in project.root.iterdir()} & {*"abcd"}
