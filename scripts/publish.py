"""Copy results from Snakemake's folders to those that DVC records.

``paper`` is a copy of results/paper. ``metrics``, which Git tracks, has metrics.json, the tables of
the plots, and version.txt with the version of normscope.
"""

import shutil
from pathlib import Path

from normscope import __version__
from normscope.command import parse
from normscope.errors import Explained, run_script
from normscope.schema import Strict

IGNORED = shutil.ignore_patterns(".*")  # seals, and Snakemake's marks of directories


class Flags(Strict):
    """Publish the paper's files."""

    source: Path = Path("results/paper")
    out: Path = Path("paper")
    metrics: Path = Path("metrics")


def main() -> None:
    flags = parse(Flags)
    for name in ("summary.md", "plots", "metrics.json"):  # before anything is removed
        if not (flags.source / name).exists():
            raise Explained(f"{flags.source / name} is missing: run snakemake --cores 4 first")
    for folder in (flags.out, flags.metrics):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(flags.source, flags.out, ignore=IGNORED)
    shutil.copytree(flags.source / "plots", flags.metrics / "plots", ignore=IGNORED)
    shutil.copyfile(flags.source / "metrics.json", flags.metrics / "metrics.json")
    (flags.metrics / "version.txt").write_text(f"{__version__}\n")


if __name__ == "__main__":
    run_script(main)
