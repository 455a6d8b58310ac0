"""What is measured of one trained model of the recall test.

All of it in evaluation mode: BatchNorm normalizes with its running averages there, token by token.
Every model of a task is measured on the same samples and, by the same draws, along the same
directions.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from normscope.io import stored
from normscope.measure import landscape, spectrum
from normscope.measure.calibration import accuracy, calibrated_loss, fit_temperature
from normscope.measure.sharpness import hessian, largest_eigenvalue, precondition
from normscope.studies.recall.model import RecallModel, draw
from normscope.studies.recall.recipe import RecallProbe, RecallStack, Task
from normscope.studies.recall.tables import METRICS, TABLES
from normscope.studies.stage import ProbeInputs
from normscope.train.optimizer import preconditioner, stability_limit
from normscope.train.weights import load, tensors_by_seed

SAMPLES = 4096  # to evaluate on, and as many others to fit the temperature on
CURVATURE_SAMPLES = 256  # the batch of every Hessian
PUBLISHED_ALPHAS = np.linspace(-0.5, 0.5, 40)  # the notebook's; 0 is not among them
ALPHAS = np.linspace(-0.5, 0.5, 21)  # with 0

Row = dict[str, float | int | str]
Rows = dict[str, list[Row]]  # by table
COLUMNS = {
    "metrics": [column.name for column in METRICS],
    "slices": TABLES["slices"].names,
    "spectra": TABLES["spectra"].names,
}


def probe(
    recipe: RecallProbe, inputs: ProbeInputs, device: torch.device
) -> dict[str, pd.DataFrame]:
    """The models of a task: tables ``metrics``, ``slices`` and ``spectra``."""
    rows: Rows = {name: [] for name in COLUMNS}
    for name, cell in recipe.jobs.items():
        for seed, parts in measure(inputs.models / name, recipe.directions, device):
            key = {**cell._asdict(), "seed": seed}
            for table, of_model in parts.items():
                rows[table] += [key | row for row in of_model]
    tables = {name: pd.DataFrame(rows[name], columns=columns) for name, columns in COLUMNS.items()}
    tables["metrics"] = tables["metrics"].astype({"diverged_at": "Int64"})
    return tables


def measure(folder: Path, directions: int, device: torch.device) -> Iterator[tuple[int, Rows]]:
    """Every model of a job: its seed, and its rows by table."""
    stack = RecallStack(**stored.read(folder / "config.json", *RecallStack.model_fields))
    weights = folder / "models.safetensors"
    models = load(weights, lambda _: RecallModel(stack.task, stack.norm))  # in evaluation mode
    task, training = stack.task, stack.training
    limit = stability_limit(training.learning_rate, training.beta1)
    moments = tensors_by_seed(folder / "moments.safetensors")
    ends = stored.metrics(folder)[["diverged_at", "parameters"]]
    for seed, model in models.items():
        row: dict[str, Any] = {str(name): end for name, end in ends.loc[seed].items()}
        parts: Rows = {}
        if pd.isna(row["diverged_at"]):
            ranks, parts["spectra"] = spectra(model.to(device), task)
            row |= evaluate(model, task) | ranks | curvature(model, task, moments[seed], limit)
            parts["slices"] = slices(model, task, directions)
        yield seed, {"metrics": [row], **parts}


def _samples(model: RecallModel, task: Task, n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences (n, T) and answers (n,): drawn on the CPU, then where the model is."""
    tokens, answers = draw(task, n, g)
    device = model.embedding.weight.device
    return tokens.to(device), answers.to(device)


def evaluate(model: RecallModel, task: Task) -> dict[str, float]:
    """Loss, accuracy, temperature, calibrated loss, and accuracy without context.

    Losses are in nats. The temperature is fitted on other samples than it is judged on.
    """
    g = torch.Generator().manual_seed(0)
    fit, fit_answers = _samples(model, task, SAMPLES, g)
    tokens, answers = _samples(model, task, SAMPLES, g)
    with torch.no_grad():
        temperature = fit_temperature(model(fit), fit_answers)
        logits, alone = model(tokens), model(tokens[:, -1:])
    return {
        "loss": float(F.cross_entropy(logits.double(), answers)),
        "accuracy": accuracy(logits, answers),
        "temperature": temperature,
        "calibrated_loss": calibrated_loss(logits, answers, temperature),
        "accuracy_without_context": accuracy(alone, answers),
    }


def curvature(model: RecallModel, task: Task, moments: Mapping[str, Tensor], limit: float) -> Row:
    """The sharpness of the loss, without and with Adam's preconditioning.

    ``sharpness`` is in the units of the parameters, which a norm changes.
    ``preconditioned_sharpness`` is not, and can be compared between norms; ``edge`` is its share of
    the limit.

    Args:
        moments: Adam's second moments at the end of training, by parameter.
        limit: The preconditioned sharpness up to which its learning rate is stable.
    """
    tokens, answers = _samples(model, task, CURVATURE_SAMPLES, torch.Generator().manual_seed(1))
    loss = F.cross_entropy(model(tokens), answers)
    names, parameters = zip(*model.named_parameters(), strict=True)
    h = hessian(loss, parameters)
    p = preconditioner([moments[name] for name in names])
    sharpness, of_adam = largest_eigenvalue(h), largest_eigenvalue(precondition(h, p))
    return {"sharpness": sharpness, "preconditioned_sharpness": of_adam, "edge": of_adam / limit}


def spectra(model: RecallModel, task: Task) -> tuple[Row, list[Row]]:
    """Ranks of the block's output, and its singular values.

    ``published``: uncentred, all positions of one training-size batch, as the notebook plots them.
    ``query`` and ``all``: centred, at the supervised position of SAMPLES sequences and at all
    positions of that batch.
    """
    g = torch.Generator().manual_seed(2)
    tokens, _ = _samples(model, task, SAMPLES, g)
    with torch.no_grad():
        queries = model.at_query(tokens)
        everywhere = model.everywhere(tokens[: task.batch_size]).flatten(0, 1)
    values = {
        "published": spectrum.singular_values(everywhere, centered=False),
        "all": spectrum.singular_values(everywhere, centered=True),
        "query": spectrum.singular_values(queries, centered=True),
    }
    at_query = values["query"]
    ranks: Row = {
        "effective_rank_query": spectrum.effective_rank(at_query),
        "effective_rank_squares_query": spectrum.effective_rank(at_query.square()),
        "effective_rank_all": spectrum.effective_rank(values["all"]),
    }
    rows: list[Row] = [
        {"where": where, "index": i, "value": v}
        for where, s in values.items()
        for i, v in enumerate(s.tolist())
    ]
    return ranks, rows


def slices(model: RecallModel, task: Task, directions: int) -> list[Row]:
    """The loss along lines through the trained parameters, all on one batch of training size.

    ``published``: the notebook's procedure; ``alpha`` is what it calls the offset, ``offset`` is
    where the parameters were. ``restored``: the same direction, put back before every offset; at
    the published alphas' true offsets too. ``filter``: filter-normalized directions.
    """
    tokens, answers = _samples(model, task, task.batch_size, torch.Generator().manual_seed(1))

    def loss() -> float:
        return float(F.cross_entropy(model(tokens), answers))

    unit = landscape.unit_direction(model, torch.Generator().manual_seed(3))
    drift = np.cumsum(PUBLISHED_ALPHAS)
    published = landscape.accumulating_slice(model, loss, unit, list(PUBLISHED_ALPHAS))
    rows = _rows("published", 0, PUBLISHED_ALPHAS, drift, published)
    for offsets in (ALPHAS, drift):
        losses = landscape.slice_loss(model, loss, unit, list(offsets))
        rows += _rows("restored", 0, offsets, offsets, losses)
    for i in range(directions):
        g = torch.Generator().manual_seed(100 + i)
        direction = landscape.filter_normalized_direction(model, g)
        losses = landscape.slice_loss(model, loss, direction, list(ALPHAS))
        rows += _rows("filter", i, ALPHAS, ALPHAS, losses)
    return rows


def _rows(
    kind: str, direction: int, alphas: np.ndarray, offsets: np.ndarray, losses: list[float]
) -> list[Row]:
    return [
        {"kind": kind, "direction": direction, "alpha": a, "offset": o, "loss": loss}
        for a, o, loss in zip(alphas.tolist(), offsets.tolist(), losses, strict=True)
    ]
