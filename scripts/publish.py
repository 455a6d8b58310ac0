"""Copy what Snakemake made to what DVC records: no file has two engines.

``paper`` is the whole of results/paper. ``metrics`` is what Git tracks: metrics.json, the tables of
the plots, and version.txt, the version of normscope that made them.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normscope import __version__
from normscope.command import parse
from normscope.errors import run_script
from normscope.schema import Strict

IGNORED = shutil.ignore_patterns(".snakemake*")  # Snakemake's mark in a directory that a job makes


class Flags(Strict):
    """Publish the paper's files."""

    source: Path = Path("results/paper")
    out: Path = Path("paper")
    metrics: Path = Path("metrics")


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A path for a new version of a folder, which then takes the place of the old one.

    A kill or a full disk leaves no half of it.
    """
    part = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(part, ignore_errors=True)
    yield part
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)


def main() -> None:
    flags = parse(Flags)
    if not (flags.source / "summary.md").is_file():
        raise SystemExit(
            f"error: {flags.source}/summary.md is missing: run snakemake --cores 4 first"
        )
    with replaced(flags.out) as paper:
        shutil.copytree(flags.source, paper, ignore=IGNORED)
    with replaced(flags.metrics) as metrics:
        shutil.copytree(flags.source / "plots", metrics / "plots", ignore=IGNORED)
        shutil.copyfile(flags.source / "metrics.json", metrics / "metrics.json")
        (metrics / "version.txt").write_text(f"{__version__}\n")


if __name__ == "__main__":
    run_script(main)
