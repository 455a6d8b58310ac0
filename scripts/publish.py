"""Copy results from Snakemake's folders to those that DVC records.

``paper`` is a copy of results/paper. ``metrics``, which Git tracks, has metrics.json, the tables of
the plots, and version.txt with the version of normscope.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normscope import __version__
from normscope.command import parse
from normscope.errors import run_script
from normscope.schema import Strict

IGNORED = shutil.ignore_patterns(".snakemake*")  # Snakemake marks directories that jobs make


class Flags(Strict):
    """Publish the paper's files."""

    source: Path = Path("results/paper")
    out: Path = Path("paper")
    metrics: Path = Path("metrics")


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A path for a new version of a folder, which replaces the folder at the end.

    A kill or a full disk thus leaves no partial folder.
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
