"""Arms of a configuration whose norms have code of their own."""

import contextlib
import json
import runpy
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, SCRIPTS

from normscope import custom_arms
from normscope.command import parse
from normscope.config import load
from normscope.custom_arms import add_arms
from normscope.errors import Explained
from normscope.nn.arms import ARMS, add
from normscope.pilot import read_project

NORM = """
import torch
from helper import SCALE
from torch import nn

class MyNorm(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):  # a comment
        return SCALE * self.gain * x / (x.abs().mean(-1, keepdim=True) + self.eps)
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    add()


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user, with a norm, its copy and what its examination found."""
    folder = tmp_path_factory.mktemp("examined")
    (folder / "my_norm.py").write_text(NORM)
    (folder / "helper.py").write_text("SCALE = 1.0\n")
    with contextlib.chdir(folder):
        registered(folder)
    add()
    return folder


@pytest.fixture
def user(examined: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder of the user, as the working directory."""
    monkeypatch.chdir(shutil.copytree(examined, tmp_path / "user"))
    return tmp_path / "user"


def registered(user: Path, module: str = "my_norm.py:MyNorm", **entry: object) -> Any:
    """The configuration's arms after the examination."""
    raw: dict[str, Any] = {"arms": {"mine": {"module": module, **entry}}}
    add_arms(raw, [user], Path("code"))
    return raw["arms"]


def test_a_file_is_an_arm_wherever_arms_are_named(user):
    raw = read_project(ROOT)
    raw["arms"] = registered(user, options={"eps": 1e-3})
    assert ARMS["mine"].label == "MyNorm"
    custom = ARMS["mine"].norm.custom
    assert custom is not None
    assert (custom.is_token_wise, custom.stacks, custom.options) == (True, True, {"eps": 1e-3})
    assert Path(custom.folder, "helper.py").read_text() == "SCALE = 1.0\n"
    block = {"protocol": "small", "arms": ["mine"], "placements": ["post"]}
    raw["main"]["runs"].append(block | {"learning_rates": [0.003], "seeds": [1, 2]})
    job = load(raw).main.trainings()["small-mine-post-0.003-1"]
    assert type(job).model_validate_json(job.model_dump_json()) == job
    other = load(raw).main.trainings()["small-layernorm-pre-0.003-4001"]
    assert "custom" not in other.model_dump_json()


def test_a_script_that_is_told_of_an_arm_knows_it(user):
    """Nothing else does; another configuration replaces the arms that were added."""
    content = json.dumps(registered(user))
    add()
    flags = runpy.run_path(str(SCRIPTS / "draw.py"))["Flags"]
    look = '{"width_mm": 100, "font_pt": 9, "level": 0.95}'
    parse(flags, ["--arms", content, "--look", look, "--tables", "a=b", "--out", "x"])
    assert ARMS["mine"].label == "MyNorm"
    add_arms({}, [user], Path("code"))
    assert "mine" not in ARMS


def test_a_changed_line_is_another_norm_and_a_changed_comment_is_not(user):
    def code() -> str:
        registered(user)
        custom = ARMS["mine"].norm.custom
        assert custom is not None
        return custom.code

    first = code()
    (user / "my_norm.py").write_text(NORM.replace("# a comment", "# another one"))
    assert code() == first
    (user / "helper.py").write_text("SCALE = 2.0\n")
    assert code() != first


def test_a_norm_is_examined_once(user, monkeypatch):
    monkeypatch.setattr(custom_arms.subprocess, "Popen", None)
    registered(user, label="Mine")
    assert ARMS["mine"].label == "Mine"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("other.py:MyNorm", "arms.mine: there is no file other.py in "),
        ("my_norm.py:MyNrom", "my_norm.py has no class 'MyNrom'; did you mean MyNorm?"),
        ("nowhere.norms:N", "no package 'nowhere' is installed here"),
        ("torch.nn:GLU", "torch.nn:GLU: it must map (..., d) to (..., d)"),
    ],
)
def test_a_norm_that_is_not_there_is_refused(user, module, reason):
    with pytest.raises(Explained) as error:
        registered(user, module)
    assert reason in str(error.value)
    assert "mine" not in ARMS


def test_an_arm_has_no_name_of_a_built_in_one(user):
    with pytest.raises(Explained, match=r"arms\.rmsnorm: a built-in arm has this name"):
        add_arms({"arms": {"rmsnorm": {"module": "my_norm.py:MyNorm"}}}, [user], Path("code"))


@pytest.mark.parametrize(
    ("norm", "hint"), [("a/b.py", "write a/b.py:MyNorm"), ("torch.nn.RMSNorm", "torch.nn:RMSNorm")]
)
def test_a_file_without_a_class_is_refused(norm, hint):
    with pytest.raises(Explained, match=hint):
        add_arms({"card": {"norm": norm}}, [], Path("code"))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("from .helper import SCALE", "line 1: write `import name`, without a dot"),
        ("import parts", "my_norm.py imports the folder parts"),
        ("import wrong", "wrong.py, line 2: "),
    ],
)
def test_code_that_would_not_be_copied_is_refused(user, code, reason):
    (user / "parts").mkdir()
    (user / "parts/scale.py").write_text("SCALE = 1.0\n")
    (user / "wrong.py").write_text("\n1 +\n")
    (user / "my_norm.py").write_text(code)
    with pytest.raises(Explained) as error:
        registered(user)
    assert reason in str(error.value)


def test_a_damaged_copy_is_made_again(user):
    registered(user)
    custom = ARMS["mine"].norm.custom
    assert custom is not None
    copy = Path(custom.folder, "my_norm.py")
    copy.write_text("")
    registered(user)
    assert copy.read_text() == NORM


def test_an_endless_loop_ends(user, monkeypatch):
    begun = user / "begun"
    code = f"import time\nopen({str(begun)!r}, 'w')\nwhile True: time.sleep(1)\n"
    (user / "my_norm.py").write_text(code)
    for timeout in (2, 10, 60):  # until the loop has begun: importing torch takes seconds
        monkeypatch.setattr(custom_arms, "TIMEOUT_S", timeout)
        with pytest.raises(Explained, match=f"did not finish in {timeout} s"):
            registered(user)
        if begun.exists():
            break
    assert begun.exists()


FORWARD = "return SCALE * self.gain * x / (x.abs().mean(-1, keepdim=True) + self.eps)"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("import os; os._exit(0)", "ended its process with status 0"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("import os; os.chdir('/')", "changes the working directory"),
        (r"raise ValueError('\x1b[31mred\x9b')", r"\x1b[31mred\x9b"),
    ],
)
def test_what_a_norm_does_to_its_process_is_said(user, statement, reason):
    (user / "my_norm.py").write_text(NORM.replace(FORWARD, f"{statement}\n        {FORWARD}"))
    with pytest.raises(Explained) as error:
        registered(user)
    assert reason in str(error.value)
    assert str(error.value).startswith("arms.mine: my_norm.py:MyNorm")
    assert str(error.value).isprintable()


def test_nothing_that_a_norm_starts_outlives_its_examination(user):
    pid = user / "pid"
    start = "import subprocess; process = subprocess.Popen(['sleep', '600'])"
    keep = f"open({str(pid)!r}, 'w').write(str(process.pid))"
    (user / "my_norm.py").write_text(f"{start}\n{keep}\n{NORM}")
    registered(user)
    time.sleep(0.1)
    status = Path(f"/proc/{pid.read_text()}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"  # nobody waits for it
