"""Copy Snakemake's results/paper to paper, which is DVC's: no file has two engines."""

import shutil
from pathlib import Path

from pydantic_settings import CliApp

from normscope.errors import report
from normscope.recipe import Strict


class Flags(Strict):
    """Publish the paper's files."""

    source: Path = Path("results/paper")
    out: Path = Path("paper")


def main() -> None:
    flags = CliApp.run(Flags)
    if not (flags.source / "summary.md").is_file():
        raise SystemExit(
            f"error: {flags.source}/summary.md is missing: run snakemake --cores 4 first"
        )
    shutil.rmtree(flags.out, ignore_errors=True)
    shutil.copytree(flags.source, flags.out)


if __name__ == "__main__":
    report(main)
