"""The command ``normscope``: the workflow in the working directory, without a checkout."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from normscope import __version__
from normscope.api.workflow import PROJECT, snakemake
from normscope.errors import Explained, run_script

EXAMPLES = """examples:
  normscope card my_norm.py:MyNorm          how your norm trains next to LayerNorm, RMSNorm and none
  normscope norms my_model                  the norms of a checkpoint of transformers, one row each
  normscope fold my_model folded            the same model without the gains of its norms
  normscope compare runs.csv --by norm      whether two norms differ by more than luck, in your runs
  normscope demo                            the whole workflow with small models, in two minutes
  normscope run --cores 4                   everything that config.yaml measures
  normscope run --cores 4 norms --dry-run   words after run are Snakemake's
Results go to the working directory; an interrupted command goes on when it is repeated."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command, and do what it says."""
    parser = _parser()
    flags, words = parser.parse_known_args(arguments)
    if words and flags.command != "run":
        parser.error(f"unknown words: {' '.join(words)}")
    if flags.command in ("norms", "fold"):
        print(_checkpoint(flags))
    elif flags.command == "card":
        from normscope.api.cards import card  # noqa: PLC0415 - it imports torch

        print(card(flags.norm, flags.budget, flags.folder, flags.cores))
    elif flags.command == "compare":
        from normscope.api.comparison import compare  # noqa: PLC0415 - it imports pandas

        named = {name: getattr(flags, name) for name in ("value", "baseline", "text", "rate")}
        table = compare(flags.runs, flags.by, flags.unit, flags.margin, **named)
        for warning, sentence in zip(table["warning"], table["sentence"], strict=True):
            print(sentence, f"Beware: {warning}." if warning else "")
    else:
        settings = ("--configfile", str(PROJECT / "config/tiny.yaml"), "--cores", "2")
        demo = ["--directory", flags.folder, *settings] if flags.command == "demo" else []
        sys.exit(subprocess.run(snakemake(*demo, *words), check=False).returncode)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="normscope",
        description="What normalization layers do inside transformers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    card = commands.add_parser("card", help="compare a norm with LayerNorm, RMSNorm and no norm")
    card.add_argument("norm", nargs="+", help="my_norm.py:MyNorm, or a built-in one, as scalenorm")
    card.add_argument("--budget", default="5 min", help="5 min, 20 min or 1 h on two cores")
    card.add_argument("--folder", default="cards", help="for results (default: %(default)s)")
    card.add_argument("--cores", type=int, help="by default all")
    passport = commands.add_parser(
        "norms",
        help="describe the norms of a checkpoint",
        description="One row per norm of a causal language model: what it computes, where it "
        "stands, what reads it, and whether its gain folds. Found by running it on random tokens; "
        "normscope.norms in Python takes text. Needs memory for the weights in float32.",
        epilog="example: normscope norms my_model",
    )
    passport.add_argument("directory", type=Path, help="what save_pretrained wrote")
    fold = commands.add_parser(
        "fold",
        help="write a checkpoint without the gains of its norms",
        description="Move gains and biases of norms into the linear layers that read them, and "
        "write a checkpoint of the same class. Needs memory for the weights in float64.",
        epilog="example: normscope fold my_model folded",
    )
    fold.add_argument("source", metavar="IN", type=Path, help="what save_pretrained wrote")
    fold.add_argument("out", metavar="OUT", type=Path, help="a new folder")
    compare = commands.add_parser(
        "compare",
        help="compare runs of any training, paired by seed",
        description="A sentence per level: the difference to the baseline, its interval and test.",
        epilog="example: normscope compare runs.csv --by norm --value val_loss --margin 0.01",
    )
    compare.add_argument("runs", help="a CSV file with a row per run")
    compare.add_argument("--by", default="norm", help="column of levels (default: %(default)s)")
    compare.add_argument("--unit", default="seed", help="column that pairs runs (%(default)s)")
    compare.add_argument("--value", default="loss", help="column of values (%(default)s)")
    compare.add_argument("--margin", type=float, default=0.01, help="what matters (%(default)s)")
    compare.add_argument("--baseline", help="a level; by default that of the first row")
    compare.add_argument("--text", help="column of texts, if runs learn several")
    compare.add_argument("--rate", help="column of learning rates")
    demo = commands.add_parser("demo", help="run the whole workflow with small models")
    demo.add_argument("--folder", default="demo", help="for results (default: %(default)s)")
    commands.add_parser(
        "run",
        help="run the workflow with the arguments of Snakemake",
        epilog="example: normscope run --cores 4 norms --dry-run",
    )
    return parser


def _checkpoint(flags: argparse.Namespace) -> str:
    """What a command on a checkpoint prints."""
    if find_spec("transformers") is None:
        raise Explained("checkpoints need transformers: pip install transformers")
    from transformers.utils import logging  # noqa: PLC0415 - they import torch

    from normscope.api import checkpoints  # noqa: PLC0415

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if flags.command == "norms":
        return checkpoints.passport(flags.directory)
    return checkpoints.fold_checkpoint(flags.source, flags.out)


def start() -> None:
    """The console script; an error that states its remedy is one line."""
    run_script(main)
