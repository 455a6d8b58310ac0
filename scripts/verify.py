"""Train a part of the evidence's models again, and say whether they end where it says."""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd
import yaml
from pydantic import Field
from snakemake.utils import update_config

from normscope.command import parse
from normscope.config import Config, load
from normscope.cost.machine import chip, usable_cores
from normscope.errors import Explained, report
from normscope.schema import PositiveInt, Strict
from normscope.statistics.agreement import agreement
from normscope.studies.recall.recipe import RecallStack
from normscope.train.recipe import Seeds, Stack

SCRIPTS = {"recall": "recall_train.py"}  # the others have Transformers on the corpus


class Flags(Strict):
    """Train a random part of the evidence again."""

    evidence: Path = Path("evidence")
    share: float = Field(default=0.1, gt=0, le=1, description="of the jobs")
    seed: int = Field(default=0, description="of the choice; another one chooses others")
    steps: PositiveInt = Field(default=1000, description="longer trainings are left out")
    data: Path = Path("results/dataset")


def configuration(name: str) -> Config:
    """The evidence's configuration: the project's, with the run's file laid over it."""
    raw, over = (yaml.safe_load(Path(f).read_text()) for f in ("config.yaml", name))
    update_config(raw, over)
    return load(raw)


def jobs(config: Config, most_steps: int) -> list[tuple[str, str]]:
    """Study and name of every training that is short enough."""
    return [
        (study, name)
        for study, part in config.studies.items()
        for name, recipe in part.trainings().items()
        if steps(recipe) <= most_steps
    ]


def steps(recipe: Seeds) -> int:
    """Of a training: on the corpus, or on a task of the decisive test."""
    if isinstance(recipe, RecallStack):
        return recipe.task.steps
    assert isinstance(recipe, Stack)
    return recipe.training.steps


def train(config: Config, data: Path, job: tuple[str, str], out: Path) -> pd.DataFrame:
    """metrics.csv of a job that is trained here, by its script."""
    study, name = job
    script = SCRIPTS.get(study, "main_train.py")
    recipe = config.studies[study].trainings()[name].model_dump_json()
    command = [sys.executable, f"scripts/{script}", "--recipe", recipe, "--out", str(out)]
    command += ["--checkpoints", str(out / "checkpoints")]
    if script == "main_train.py":
        command += ["--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Explained(f"{study}/{name} cannot be trained:\n{done.stderr}")
    return pd.read_csv(out / "metrics.csv")


def compared(was: pd.DataFrame, now: pd.DataFrame) -> list[str]:
    """A verdict for every seed of a job."""
    spread = float(was["val_loss"].std())
    both = was.merge(now, on="seed", suffixes=("", "_now"))
    return [
        agreement(a, b, spread) for a, b in zip(both["val_loss"], both["val_loss_now"], strict=True)
    ]


def main() -> None:
    flags = parse(Flags)
    if not (flags.evidence / "run.json").is_file():
        raise Explained(f"{flags.evidence}/run.json is missing: make evidence writes it")
    run = yaml.safe_load((flags.evidence / "run.json").read_text())
    evidence = pd.read_csv(flags.evidence / "models.csv")
    config = configuration(run["configuration"])
    every = jobs(config, flags.steps)
    n = max(1, round(flags.share * len(every)))
    numbers = pd.Series(range(len(every))).sample(n, random_state=flags.seed)
    chosen = [every[i] for i in numbers]
    print(f"{len(chosen)} of {len(every)} jobs; evidence: {run['chip']}; here: {chip()}")
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(usable_cores()) as pool:
        outs = [Path(folder) / str(i) for i in range(len(chosen))]
        made = pool.map(partial(train, config, flags.data), chosen, outs)
        for (study, name), now in zip(chosen, made, strict=True):
            was = evidence[(evidence["study"] == study) & (evidence["job"] == name)]
            verdicts = Counter(compared(was, now))
            counts += verdicts
            print(f"{study}/{name}: {summary(verdicts)}", flush=True)
    print(f"{counts.total()} models: {summary(counts)}")
    if counts["differs"]:
        sys.exit(1)


def summary(counts: Mapping[str, int]) -> str:
    """How many of each verdict."""
    return ", ".join(f"{n} {word}" for word, n in counts.items())


if __name__ == "__main__":
    report(main)
