"""Copy Snakemake's results/paper to paper, which is DVC's: no file has two engines."""

import shutil
from pathlib import Path

from normscope.command import parse
from normscope.errors import report
from normscope.schema import Strict


class Flags(Strict):
    """Publish the paper's files."""

    source: Path = Path("results/paper")
    out: Path = Path("paper")


def main() -> None:
    flags = parse(Flags)
    if not (flags.source / "summary.md").is_file():
        raise SystemExit(
            f"error: {flags.source}/summary.md is missing: run snakemake --cores 4 first"
        )
    # under another name first, so that a kill or a full disk leaves no half of a paper
    part = flags.out.with_name(f".{flags.out.name}.tmp")
    shutil.rmtree(part, ignore_errors=True)
    # Snakemake's mark in a directory that a job makes
    shutil.copytree(flags.source, part, ignore=shutil.ignore_patterns(".snakemake*"))
    if flags.out.exists():
        shutil.rmtree(flags.out)
    part.rename(flags.out)


if __name__ == "__main__":
    report(main)
