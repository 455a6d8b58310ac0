"""Experiments of DVC in copies of the repository, which lie below it and fill its store."""

from pathlib import Path

COPIES = Path(".dvc/tmp/exps")


def home(folder: str) -> str:
    """A folder of the repository at work here: in a copy, that of the origin."""
    here = Path.cwd()
    origins = [path.parents[2] for path in here.parents if path.parts[-3:] == COPIES.parts]
    return str(Path(*origins[:1] or [here], folder))


def are_at_work() -> bool:
    """Whether copies of this repository have jobs of Snakemake running."""
    locks = (COPIES.glob(f"{copy}/.snakemake/locks/*") for copy in ("*", "*/*"))
    return any(map(any, locks))
