"""Choose learning rates on pilot seeds, which no test uses, and keep their losses."""

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.config import load
from normscope.custom_arms import add_arms
from normscope.errors import Explained, run_script
from normscope.io.files import write_json
from normscope.io.texts import text_folder, text_of
from normscope.io.yamlfile import overlay, read_yaml
from normscope.machine import usable_cores
from normscope.pilot import CODE, open_cells, with_rates
from normscope.schema import FLOATS, Strict
from normscope.studies.pilot import Pilot, Trial, losses_of, read_trials, write_trials
from normscope.studies.single import SingleJob, train_single
from normscope.train.schedule import least


class Flags(Strict):
    """Train pilot models of every cell that says ``learning_rates: pilot`` and has none yet."""

    names: Sequence[Path] = Field(
        default=(Path("config.yaml"), Path("config/paper.yaml")),
        description="configurations whose cells are tried; each is laid over config.yaml",
    )
    out: Path = Path("data/pilot.csv")
    results: Path = Field(default=Path("results"), description="the dataset, and pilot models")


def jobs(raw: Mapping[str, Any], pilot: Pilot) -> dict[tuple[str, str], list[SingleJob]]:
    """What to train next, as far as the losses so far tell, by study and cell: a job per text."""
    studies = load(with_rates(raw, pilot)).trained_studies
    by_text: dict[str, list[int]] = {}
    for seed in pilot.seeds:
        by_text.setdefault(text_of(pilot.texts, seed), []).append(seed)
    jobs = {}
    for name, cell, _ in open_cells(raw):
        for rate in pilot.next_rates(name, cell):
            at_rate = cell._replace(learning_rate=rate)
            recipes = {t: studies[name].stack_of(at_rate, seeds) for t, seeds in by_text.items()}
            jobs[name, str(at_rate)] = [
                SingleJob(name, str(at_rate), text, recipe.model_dump_json())
                for text, recipe in recipes.items()
            ]
    return jobs


def prepare_texts(raw: Mapping[str, Any], pilot: Pilot, results: Path) -> None:
    """Let the workflow make the texts that the pilot models learn."""
    path = results / "pilot" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, with_rates(raw, pilot))
    texts = [f"{text_folder(results / 'dataset', text)}/meta.json" for text in pilot.texts]
    command = ["snakemake", *texts, "--cores", "1", "--configfile", str(path)]
    subprocess.run(command, check=True)


def folder(job: SingleJob, results: Path) -> Path:
    """The folder of a job's models, named by all that decides them but the code."""
    settings = f"{job.recipe} {job.text}"
    return results / "pilot" / job.study / sha256(settings.encode()).hexdigest()[:16]


def pilot_loss(metrics: Sequence[Path]) -> str:
    """The mean validation loss of the models of some jobs; empty if one diverged."""
    losses = pd.concat([pd.read_csv(path) for path in metrics])["val_loss"].astype(float)
    return "" if losses.isna().any() else f"{losses.mean():{FLOATS}}"


def run(raw: Mapping[str, Any], flags: Flags) -> Pilot:
    """Train and record pilot models until every cell's best rate lies inside, or at a limit.

    Returns:
        The pilot with all losses.
    """
    rows = read_trials([flags.out])
    plan = Pilot.model_validate(raw.get("pilot") or {})
    words = " ".join(map(str, plan.seeds)), " ".join(plan.texts)
    while True:
        pilot = plan.model_copy(update={"losses": losses_of(rows)})
        if not (todo := jobs(raw, pilot)):
            return pilot
        prepare_texts(raw, pilot, flags.results)
        with ThreadPoolExecutor(usable_cores()) as pool:

            def metrics(job: SingleJob) -> Future[Path]:
                dataset = flags.results / "dataset"
                return pool.submit(train_single, job, dataset, folder(job, flags.results))

            made = {key: [metrics(job) for job in of_cell] for key, of_cell in todo.items()}
            try:
                for (study, cell), parts in made.items():
                    loss = pilot_loss([part.result() for part in parts])
                    rows.append(Trial(study, cell, *words, loss))
                    write_trials(flags.out, rows)
                    print(f"{study}: {cell}: {rows[-1].loss or 'diverged'}", flush=True)
            except Explained:  # what was not started would delay the message
                pool.shutdown(cancel_futures=True)
                raise


def main() -> None:
    flags = parse(Flags)
    project = read_yaml(Path("config.yaml"))
    for name in flags.names:
        raw = overlay(project, read_yaml(name))
        add_arms(raw, [name.parent, Path()], CODE)
        pilot = run(raw, flags)
        for study, cell in dict.fromkeys((t.study, t.cell) for t in open_cells(raw)):
            best = least(pilot.losses_by_rate(study, cell))
            choice = pilot.choice(study, cell._replace(learning_rate=best))
            bound = ", at the edge of what was tried" if choice and choice.at_edge else ""
            print(f"{study}: {cell._replace(learning_rate=best)}{bound}")
    print(f"{flags.out}: commit it before make freeze")


if __name__ == "__main__":
    run_script(main)
