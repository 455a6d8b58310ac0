"""Figures drawn in this process, and what is in them."""

import functools
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from processes import ROOT

from normscope.config import load as load_config
from normscope.pages import style
from normscope.pages.drawing import Draw, Look
from normscope.pages.figures import load
from normscope.pilot import read_project
from normscope.studies.stage import FOLDER

CONFIG = load_config(read_project(ROOT))
FIGURES = load(FOLDER, CONFIG.studies)
LOOK = Look(width_mm=170, font_pt=8, level=0.95)


@functools.cache
def drawing(name: str) -> Draw:
    """``draw`` of a figure."""
    return import_module(f"normscope.studies.{FIGURES[name].study}.figures.{name}").draw


class Drawn(NamedTuple):
    """A figure, and the words of n for its caption."""

    figure: Figure
    n: str

    @property
    def axes(self) -> list[Axes]:
        return self.figure.axes

    @property
    def words(self) -> list[str]:
        """All that is written, a text each."""
        return [str(text.get_text()) for text in self.figure.findobj(Text) if text.get_text()]

    def save(self, stem: Path) -> dict[str, bytes]:
        """What is written of it."""
        style.save(self.figure, stem)
        return {p.suffix: p.read_bytes() for p in stem.parent.glob(f"{stem.name}.*")}


def draw(name: str, tables: Mapping[str, pd.DataFrame], **params: Any) -> Drawn:
    style.use(LOOK.font_pt)
    return Drawn(*drawing(name)(tables, LOOK, **params))


def data(line: Line2D) -> tuple[list[float], list[float]]:
    """x and y of a line, numbers that are not NaN."""
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    known = np.isfinite(x) & np.isfinite(y)
    return x[known].tolist(), y[known].tolist()
