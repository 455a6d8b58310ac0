"""DVC experiments, which run in copies below the repository and share its store."""

from pathlib import Path

COPIES = Path(".dvc/tmp/exps")


def home(folder: str) -> str:
    """A folder of this repository; in the copy of an experiment, of the original."""
    here = Path.cwd()
    origins = [path.parents[2] for path in here.parents if path.parts[-3:] == COPIES.parts]
    return str(Path(*origins[:1] or [here], folder))


def are_at_work() -> bool:
    """Whether Snakemake is running in a copy of this repository."""
    locks = (COPIES.glob(f"{copy}/.snakemake/locks/*") for copy in ("*", "*/*"))
    return any(map(any, locks))
