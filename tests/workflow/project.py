"""A copy of the project with a tiny configuration, in which the engines run, and its rules."""

import compileall
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest
import warm
import yaml

from normscope.config import Config
from normscope.io.yamlfile import overlay
from normscope.locks import lock
from normscope.pages.figures import load
from normscope.pilot import TRAINED as TRAINED_STUDIES

ROOT = Path(__file__).parents[2]
ENGINES = Path(sys.executable).parent
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")
MADE = {
    "results",
    "store",
    "paper",
    "metrics",
    ".snakemake",
    ".git",
    ".venv",
    "__pycache__",
    ".dvc",
}


DRAWN = ("loss", "decisive", "dose")  # figures of the test project; the others are an empty panel
EMPTY = """from normscope.pages import style


def draw(tables, look, **params):
    figure, axes = style.canvas(look.width_mm, 20, 1, 1)
    return figure, "n: not drawn."
"""


def corpus() -> str:
    """Words of a small invented language, which a model of two blocks can learn."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(2, 6))) for _ in range(60)]
    return " ".join(rng.choices(words, k=4000))


def stats(output: str) -> dict[str, int]:
    """The number of jobs by rule, without targets, in what Snakemake printed of a plan."""
    table = re.findall(r"^(\w+) +(\d+)$", output.partition("Job stats:")[2], re.MULTILINE)
    return {rule: int(n) for rule, n in table if rule not in ("all", "total")}


class Project:
    """A working copy of the project."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def env(self) -> dict[str, str]:
        unset = ("PYTHONPATH", "SNAKEMAKE_OUTPUT_CACHE")
        env = {k: v for k, v in os.environ.items() if k not in unset}
        return env | {"PATH": f"{ENGINES}{os.pathsep}{env['PATH']}"}

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command; `snakemake`, `dvc` and jobs are forks of `warm.py`."""
        env = self.env | {"PATH": f"{warm.programs()}{os.pathsep}{self.env['PATH']}"}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.root, env=env, text=True, stdout=pipe, stderr=pipe
        )

    def run(self, *command: str, ok: bool = True) -> str:
        """Run a command to its end and return its output."""
        process = self.start(*command)
        output = "".join(process.communicate())
        assert (process.returncode == 0) == ok, output
        return output

    def snakemake(self, *flags: str, ok: bool = True) -> str:
        quick = ("--scheduler", "greedy")  # a solver of linear programs costs a second a job
        return self.run("snakemake", "--cores", "2", *quick, *flags, ok=ok)

    def logs(self) -> list[str]:
        """What Snakemake logged in each run, oldest first; the terminal shows less."""
        return [path.read_text() for path in sorted((self.root / ".snakemake/log").iterdir())]

    def planned(self, *targets: str) -> dict[str, int]:
        """The number of jobs of a dry run by rule, without targets."""
        output = self.snakemake("-n", *targets)
        jobs = stats(output)
        assert jobs or "Nothing to be done" in output, output
        return jobs

    @contextmanager
    def edited(self, path: str, old: str, new: str) -> Iterator[None]:
        """Replace text in a file while the body runs."""
        file = self.root / path
        text = file.read_text()
        assert old in text, f"{old!r} is not in {path}"
        file.write_text(text.replace(old, new, 1))
        try:
            yield
        finally:
            file.write_text(text)

    def copy(self, root: Path) -> "Project":
        """A copy of the project and its results, which a test may change."""
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)

    def digests(self, folder: str) -> dict[str, str]:
        base = self.root / folder
        return {
            str(p.relative_to(base)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(base.rglob("*"))
            if p.is_file() and not p.name.startswith(".")
        }


@cache
def tiny_model() -> Path:
    """A random model of a real class with a tokenizer trained on the prompts, on disk."""
    import pretrained_models  # noqa: PLC0415 - seconds, and only some tests need it

    model = pretrained_models.random_model("llama")
    return pretrained_models.save(model, Path(tempfile.mkdtemp(), "tiny"), shard="1GB")


def added(root: Path, name: str, eps: str) -> dict[str, object]:
    """Copy the tiny model into the project with another epsilon, and return its entry."""
    folder = shutil.copytree(tiny_model(), root / f"{name}_model")
    facts = (folder / "config.json").read_text()
    assert '"rms_norm_eps": 1e-06' in facts
    (folder / "config.json").write_text(facts.replace('_eps": 1e-06', f'_eps": {eps}'))
    source = {"kind": "directory", "path": folder.name}
    return {"name": name, "family": name.title(), "source": source}


def tiny(root: Path) -> dict[str, Any]:
    """The tiny configuration, reduced to few jobs of each kind."""
    config = yaml.safe_load((root / "config.yaml").read_text())
    choices = yaml.safe_load((root / "config" / "tiny.yaml").read_text())
    config = overlay(config, choices)
    once, swept = config["main"]["runs"][-2:]
    once["arms"] = ["layernorm"]
    swept["placements"], swept["learning_rates"] = ["pre"], [0.001, 0.003]
    config["dataset"] = {
        "sha256": hashlib.sha256((root / "corpus.txt").read_bytes()).hexdigest(),
        "sources": [{"kind": "path", "path": "corpus.txt"}],
    }
    # one rate of the main runs, and one arm of the recall test
    config["main"]["runs"][0]["learning_rates"] = [0.001]
    recall = config["recall"]
    recall["published"]["arms"] = recall["published"]["arms"][:1]
    recall["corrected"]["arms"] = ["layernorm"]
    recall["runs"][0]["arms"] = ["layernorm"]
    # one protocol of the Jacobian: a model with the exact backward pass, one with a surrogate
    jacobian = config["jacobian"]
    jacobian["published"] = jacobian["corrected"]
    small = jacobian["protocols"]["small"]
    # statements name the others
    jacobian["protocols"] = {"small": small, "small_long": small, "small_austen": small}
    jacobian["runs"] = jacobian["runs"][1:2]
    models = (("tiny", "1e-06"), ("other", "1e-05"))
    config["pretrained"]["models"] = [added(root, name, eps) for name, eps in models]
    config["device"] = "cpu"  # on a machine with a GPU too
    return config


def fresh(root: Path) -> Project:
    """A project as after a fresh clone, with a tiny configuration and no results."""
    shutil.copytree(
        ROOT,
        root,
        ignore=lambda at, names: [
            n for n in names if n == "__pycache__" or (n in MADE and Path(at) == ROOT)
        ],
    )
    (root / ".dvc").mkdir()
    for name in ("config", ".gitignore"):
        shutil.copy(ROOT / ".dvc" / name, root / ".dvc" / name)
    for path in root.glob("src/normscope/studies/*/figures/[!_]*.py"):
        if path.stem not in (*DRAWN, "card"):
            path.write_text(EMPTY)
    (root / "corpus.txt").write_text(corpus())
    (root / "config.yaml").write_text(yaml.safe_dump(tiny(root), sort_keys=False))
    # jobs write no bytecode; that of an edited module is invalid, because it has the source's hash
    hashed = PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(root / "src", quiet=1, invalidation_mode=hashed)
    project = Project(root)
    project.run("git", "init", "--quiet", "--initial-branch=main")
    project.run("git", "add", "--all")
    project.run("git", *IDENTITY, "commit", "--quiet", "--message", "as cloned")
    return project


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> "Project":
    """A copy of a project that is made once, whatever the number of processes that run tests."""
    folder = factory.getbasetemp()
    first = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / f"first_{name}"
    done = first.with_suffix(".done")
    with first.with_suffix(".lock").open("a") as file:
        lock(file)
        if not done.exists():
            make(first)
            done.touch()
    return Project(first).copy(factory.mktemp(name) / "project")


FOLDER = ROOT / "src/normscope/studies"
STUDIES = [name for name in Config.model_fields if (FOLDER / name).is_dir() and name != "card"]
STAGES = {"train": "train", "probe": "probe", "tables": "make_tables"}  # script by end of the rule
MODULES = {"train": "train", "probe": "probe", "tables": "tabulate"}  # of a study, in the same way
ALL = {"render": "pages", "metrics": "tables"}  # modules of every study
# rules of DVC's stage `runs`
TRAINED = {"dataset", "pretrained_probe", *(f"{study}_train" for study in TRAINED_STUDIES)}

SCRIPTS = {path.stem: path for path in sorted((ROOT / "scripts").glob("*.py"))}
RULES = {
    f"{study}_{stage}": [SCRIPTS[script], FOLDER / study / f"{MODULES[stage]}.py"]
    for stage, script in STAGES.items()
    for study in STUDIES
    if (FOLDER / study / f"{MODULES[stage]}.py").is_file()
}
RULES |= {
    f"{study}_train": [SCRIPTS["train"], FOLDER / study / "train.py"] for study in TRAINED_STUDIES
}
RULES |= {
    f"figure_{name}": [SCRIPTS["draw"], FOLDER / figure.study / f"figures/{name}.py"]
    for name, figure in load(FOLDER, STUDIES).items()
    if figure.needs is None  # test projects lack what the others need
}
RULES |= {
    name: [path, *(FOLDER / study / f"{ALL[name]}.py" for study in STUDIES if name in ALL)]
    for name, path in SCRIPTS.items()
    if name not in {*STAGES.values(), "draw"}
}
RULES = {rule: [path for path in files if path.is_file()] for rule, files in RULES.items()}


def records(inputs: str) -> list[str]:
    """The records of code among the inputs of a job, as ``--detailed-summary`` lists them."""
    return [path for path in inputs.split(",") if fnmatch(path, "results/code/*.txt")]
