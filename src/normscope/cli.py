"""The command ``normscope``: the workflow in the working directory, without a checkout."""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from normscope.api.workflow import PROJECT, snakemake
from normscope.errors import run_script

EXAMPLES = """examples:
  normscope card my_norm.py:MyNorm          how your norm trains next to LayerNorm, RMSNorm and none
  normscope demo                            the whole workflow with small models, in two minutes
  normscope run --cores 4                   everything that config.yaml measures
  normscope run --cores 4 norms --dry-run   words after run are Snakemake's
Results go to the working directory; an interrupted command goes on when it is repeated."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command, and do what it says."""
    parser = argparse.ArgumentParser(
        prog="normscope",
        description="What normalization layers do inside transformers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    card = commands.add_parser("card", help="compare a norm with LayerNorm, RMSNorm and no norm")
    card.add_argument("norm", nargs="+", help="my_norm.py:MyNorm, or the name of an arm")
    card.add_argument("--budget", default="5 min", help="5 min, 20 min or 1 h on two cores")
    card.add_argument("--folder", default="cards", help="for results (default: %(default)s)")
    card.add_argument("--cores", type=int, help="by default all")
    demo = commands.add_parser("demo", help="run the whole workflow with small models")
    demo.add_argument("--folder", default="demo", help="for results (default: %(default)s)")
    commands.add_parser("run", help="run the workflow with the arguments of Snakemake")
    flags, words = parser.parse_known_args(arguments)
    if words and flags.command != "run":
        parser.error(f"unknown words: {' '.join(words)}")
    if flags.command == "card":
        from normscope.api.cards import card as make_card  # noqa: PLC0415 - it imports torch

        print(make_card(flags.norm, flags.budget, flags.folder, flags.cores))
    if flags.command == "demo":
        settings = ("--configfile", str(PROJECT / "config/tiny.yaml"), "--cores", "2")
        words = ["--directory", flags.folder, *settings]
    if flags.command != "card":
        sys.exit(subprocess.run(snakemake(*words), check=False).returncode)


def start() -> None:
    """The console script; an error that states its remedy is one line."""
    run_script(main)
