"""What a configuration costs: measured where a job has a benchmark file, else projected.

A projection takes the seconds per unit of work of the measured job that is nearest in work, among
those of the same rule and kind. Work is proportional to floating-point operations for trainings,
and to models or blocks for what takes them apart.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from normscope.config import Config
from normscope.nn.recipe import Model, Norm
from normscope.studies.recall.recipe import RecallRun
from normscope.train.recipe import Training


@dataclass(frozen=True)
class Job:
    """A job of the workflow.

    Args:
        rule, name: which tell its benchmark file.
        kind: jobs of another kind say nothing of its speed.
        work: in a unit of the rule's own.
    """

    rule: str
    name: str
    kind: str
    work: float


def flops(model: Model, training: Training) -> float:
    """Of a training: 6 for every parameter of a block and token, and those of attention."""
    d, length = model.n_embd, model.block_size
    tokens = training.steps * training.batch_size * length
    return 6.0 * tokens * model.n_layer * (12 * d**2 + 2 * length * d)


def jobs(config: Config) -> Iterator[Job]:
    """Those whose number or size depends on the configuration."""
    for name, run in (config.trained() | config.jacobian.trained()).items():
        kind = run.training.precision
        yield Job("train", name, kind, flops(run.model, run.training))
    for name in config.trained():
        yield Job("stream", name, "", 1)
    of_recall = config.recall.trained()
    for name, run in of_recall.items():
        task = run.task
        work = float(task.steps * task.batch_size * task.n_embd**2)
        yield Job("recall", name, _kind(run), work)
    for cell, seeds in config.recall.cells().items():
        yield Job("probe", cell, _kind(of_recall[f"{cell}-{seeds[0]}"]), len(seeds))
    for cell, seeds in config.jacobian.cells(exact=True).items():
        model = config.jacobian.protocols[cell.split("-", maxsplit=1)[0]].model
        yield Job("decompose", cell, "", len(seeds) * model.n_layer * model.n_embd)
    for name, recipe in config.depth.recipes().items():
        runs = [flops(run.model, run.training) for run in recipe.runs().values()]
        yield Job("ensemble", name, "", sum(runs))
    for name, place in config.depth.places().items():
        blocks = sum(p.depth * (len(p.seeds) + len(p.trained)) for p in place.probes)
        yield Job("descend", name, "", blocks * place.windows * place.spectra)
    for name in config.pretrained.by_name():
        yield Job("measure", name, "", 1)


def _kind(run: RecallRun) -> str:
    """BatchNorm needs all positions, other norms the query's alone."""
    return f"{run.task.kind}, {_scope(run.norm)}"


def _scope(norm: Norm) -> str:
    return "all positions" if norm.statistic == "batch" else "the query"


def projected(job: Job, measured: Iterable[tuple[Job, float]]) -> float:
    """Seconds of a job, from jobs that were measured; NaN where none is of its rule and kind."""
    alike = [(j, s) for j, s in measured if (j.rule, j.kind) == (job.rule, job.kind)]
    alike = alike or [(j, s) for j, s in measured if j.rule == job.rule]
    if not alike:
        return math.nan
    distance = {j: abs(math.log(j.work / job.work)) for j, _ in alike}
    least = min(distance.values())
    rates = [s / j.work for j, s in alike if distance[j] <= least + 1e-9]
    return job.work * sum(rates) / len(rates)


def cost_table(
    asked: Iterable[Job], reference: Iterable[Job], seconds: Mapping[tuple[str, str], float]
) -> pd.DataFrame:
    """A row per rule: jobs, how many of them are measured, core-hours of these and of the rest.

    Args:
        asked: jobs of the configuration.
        reference: jobs of the configuration that the benchmark files are of. One that is asked for
            too, of the same kind and work, is measured.
        seconds: one core's, of jobs of ``reference`` by rule and name.
    """
    known = {j: seconds[j.rule, j.name] for j in reference if (j.rule, j.name) in seconds}
    measured = list(known.items())
    rows: dict[str, dict] = {}
    for job in asked:
        empty = {"rule": job.rule, "jobs": 0, "measured jobs": 0, "measured": 0.0, "projected": 0.0}
        row = rows.setdefault(job.rule, empty)
        row["jobs"] += 1
        if job in known:
            row["measured jobs"] += 1
            row["measured"] += known[job] / 3600
        else:
            row["projected"] += projected(job, measured) / 3600
    return pd.DataFrame(list(rows.values()))
