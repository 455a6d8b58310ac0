"""The workflow of a checkout or of an installed package, as a command."""

import sys
from importlib.util import find_spec
from pathlib import Path

from normscope.errors import Explained

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]
# Snakefile, rules, scripts, settings and data, which a wheel has in a folder of the package
PROJECT = CHECKOUT if (CHECKOUT / "Snakefile").is_file() else PACKAGE / "project"


def snakemake(*words: str) -> list[str]:
    """The command that starts the workflow with these arguments.

    Raises:
        Explained: Its packages are not installed.
    """
    if find_spec("snakemake") is None:
        raise Explained("the workflow needs more packages: pip install 'normscope[workflow]'")
    profile = str(PROJECT / "profiles/default")
    place = ("--snakefile", str(PROJECT / "Snakefile"), "--profile", profile)
    return [sys.executable, "-m", "snakemake", *place, *words]
