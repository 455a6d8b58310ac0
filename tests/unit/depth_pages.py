"""The tables of depth and of LayerNorm from scratch on disk, for tests of what reads them."""

from pathlib import Path

from depth_evidence import losses, near
from depth_recipes import depth_grid
from test_depth_summary import SCRATCH, all_rates, measured
from test_depth_textbook_claims import tables

from normscope.io.csvfile import write_csv


def write(place: Path) -> list[object]:
    """Write the tables below a directory; the flags that name them."""
    (place / "depth").mkdir(exist_ok=True)
    measured(place / "depth", all_rates(), losses(near(2.5)))
    for name, table in tables(scratch=SCRATCH).items():
        write_csv(place / "textbook" / f"{name}.csv", table)
    return ["--depth", place / "depth", "--textbook", place / "textbook"]


def grid() -> str:
    """The configuration that these are of, as JSON."""
    return depth_grid().model_dump_json()
