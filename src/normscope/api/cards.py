"""Make the card of a norm by the workflow, and show it."""

import ast
import html
import inspect
import json
import linecache
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from torch import nn

from normscope.api.arguments import public
from normscope.api.workflow import snakemake
from normscope.custom_arms import name_card_norms
from normscope.errors import Explained, suggest
from normscope.io.files import write_text
from normscope.io.tables import Tables, read_table
from normscope.studies.card.grid import budgets
from normscope.studies.card.tables import SPEED, TABLES

# what the source of a class that was defined in a notebook finds there
IMPORTS = """import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


"""
HEIGHT = 900  # pixels of a card in a notebook
Norm = str | type[nn.Module]


class Card:
    """The card of a norm.

    Attributes:
        norm: The name of its arm.
        answer: Whether it trains as well as LayerNorm, in one line.
        path: The page as HTML; next to it is card.json, and its tables are in ``../tables``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._page = path.read_text()
        content = json.loads(path.with_suffix(".json").read_text())
        self.norm: str = content["norm"]
        self.answer: str = content["answer"]
        made = path.parents[1]
        self._tables = dict(Tables(made / "tables", TABLES))
        self._tables["speed"] = read_table(made / "speed/speed.csv", SPEED)

    def table(self, name: str = "compared") -> pd.DataFrame:
        """A table of the card, by default the losses next to those of other norms.

        Raises:
            Explained: It has no such table.
        """
        if name not in self._tables:
            raise Explained(f"the card has no table {name!r}; {suggest(name, self._tables)}")
        return self._tables[name].copy()

    def _repr_html_(self) -> str:
        page = html.escape(self._page)
        return f'<iframe srcdoc="{page}" width="100%" height="{HEIGHT}" frameborder="0"></iframe>'

    def __repr__(self) -> str:
        return f"{self.answer}\nCard of {self.norm}: {self.path}"


@public
def card(
    norm: Norm | Sequence[Norm],
    budget: str = "5 min",
    folder: str | Path = "cards",
    cores: int | None = None,
) -> Card:
    """Make the card of a norm: a comparison with LayerNorm, RMSNorm and no norm.

    The workflow trains and measures in a folder, whose results are kept: the same call again does
    nothing, another norm is compared with the same models, and an interrupted call goes on.

    Args:
        norm: A class that takes d and maps (..., d) to (..., d), ``file.py:Class``,
            ``package.module:Class`` or the name of an arm; of several, the first one's card is
            returned, and compares all of them. A class of a notebook may use torch, nn, F and math.
        budget: What is trained: ``5 min``, ``20 min`` or ``1 h`` on two cores, or ``demo``.
        folder: For results, which grow to some 10 MB.
        cores: How many to use; by default all.

    Returns:
        Card: Shown as a page in a notebook.

    Raises:
        Explained: The norm cannot be trained, with the reason, or the workflow is not there.
    """
    given = [norm] if isinstance(norm, str | type) else norm
    if not given:
        raise Explained("norm is empty: give a class or a name")
    if budget not in budgets():
        raise Explained(f"there is no budget {budget!r}; {suggest(budget, budgets())}")
    if cores is not None and cores < 1:
        raise Explained(f"cores is {cores!r}: give a number from 1")
    at = Path(folder).expanduser().absolute()
    names = [_config_name(one, at) for one in given]
    try:
        at.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Explained(f"folder {at}: {e.strerror}") from None
    config = {"norm": names, "budget": budget}
    words = ("--directory", str(at), "--cores", str(cores or "all"), "card")
    _run(snakemake(*words, "--config", f"card={json.dumps(config)}"))
    name_card_norms({"card": config})
    return Card(at / "results/card" / config["norm"][0] / "card.html")


def _config_name(norm: Norm, folder: Path) -> str:
    """The name of a norm for the configuration; the source of a class of a notebook is written."""
    if isinstance(norm, str):
        place, colon, kind = norm.rpartition(":")
        if not (colon and place.endswith(".py")):
            return norm
        path = Path(place).expanduser().absolute()
        if not path.is_file():
            raise Explained(f"there is no file {path}")
        return f"{path}:{kind}"
    spec = getattr(sys.modules.get(norm.__module__), "__spec__", None)
    if spec is not None and spec.origin and norm.__module__ != "__main__":
        place = norm.__module__ if "site-packages" in spec.origin else spec.origin
        return f"{place}:{norm.__qualname__}"
    path, source = folder / "norms" / f"{norm.__name__}.py", _source(norm)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, IMPORTS + source)
    return f"{path}:{norm.__name__}"


def _source(norm: type[nn.Module]) -> str:
    """The source of a class that was defined in a notebook, whose cells Python keeps by line."""
    methods = [inspect.unwrap(value) for value in vars(norm).values() if inspect.isfunction(value)]
    if methods:
        source = "".join(linecache.getlines(methods[-1].__code__.co_filename))
        classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
        for node in reversed(classes):  # the last one of this name counts
            if node.name == norm.__name__:
                return f"{ast.get_source_segment(source, node)}\n"
    raise Explained(
        f"the source of {norm.__name__} is not known: put it in a file, and give file.py:Class"
    )


def _run(command: Sequence[str]) -> None:
    """Run the workflow, and print its lines on progress."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    try:
        for line in _lines(process):
            lines.append(line)
            if "of the work" in line or "Ctrl-C" in line or line.startswith("Budget"):
                print(line, flush=True)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    if process.wait():
        noise = ("Using profile", "WorkflowError", "  File ")
        raise Explained("\n".join([line for line in lines if not line.startswith(noise)][-12:]))


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip():
            yield line.rstrip()
