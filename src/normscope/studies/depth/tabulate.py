"""From probed and trained models to shapes: curves by block, rates per block, losses."""

import math

import numpy as np
import pandas as pd

from normscope.io import dataset
from normscope.io.tables import collect
from normscope.statistics.outcome import unigram_loss, with_outcome
from normscope.statistics.summary import select, split, summarize
from normscope.statistics.tuning import choose
from normscope.studies.depth.recipe import DepthTables
from normscope.studies.depth.tables import (
    ARITHMETIC,
    LAYERS,
    MEASURES,
    RATES,
    RELATIVE,
    SIZES,
    TABLES,
)
from normscope.studies.outcome import with_pilot
from normscope.studies.stage import TableInputs

MODEL = TABLES["rates"].keys
SHAPE = MODEL[:-2]  # all but state and seed
SCHEDULE = ["learning_rate", "warmup_steps"]
NEAR = 6  # blocks from the last one, as many as have twelve sublayers


def tabulate(recipe: DepthTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    data = dataset.read(inputs.corpus)
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    unigram = unigram_loss(data.train, data.val[1 : recipe.eval_tokens], data.vocab_size)
    columns = [*TABLES["losses"].keys, "val_loss", "diverged_at"]
    models = collect(inputs.models, "metrics.csv", keys).reindex(columns=columns)
    losses = with_outcome(models, data.vocab_size, unigram).assign(unigram=unigram)
    losses = with_pilot(losses.astype({"diverged_at": "Int64"}), recipe.jobs, recipe.pilot)
    blocks = collect(inputs.probes, "blocks.csv", {place: {} for place in recipe.places})
    of_models = rates(blocks)
    return {
        "blocks": blocks,
        "losses": losses,
        "chosen": choose(losses, SHAPE, by="capped_loss", setting=SCHEDULE),
        "by_block": by_block(blocks, recipe.level),
        "rates": of_models,
        "layers": by_layer(of_models),
        "by_shape": by_shape(of_models, recipe.level),
        "over_rates": over_rates(losses),
        "advantages": advantages(losses),
        "warm_ups": warm_ups(losses),
        "trainability": trainability(losses, recipe.level),
    }


def by_block(blocks: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per shape, state, block and measure: n models, mean and t interval.

    Sizes, their ratios to the last block (``RELATIVE``) and the largest singular value are averaged
    in logarithms; a model in which one is 0 or not finite is left out.
    """
    gradient = blocks.sort_values("block").groupby(MODEL)["gradient"]
    relative = blocks["gradient"] / gradient.transform(lambda of_model: of_model.iloc[-1])
    keys, sizes = [*SHAPE, "state", "block"], (*SIZES, RELATIVE, "largest")
    blocks = blocks.assign(**{RELATIVE: relative})
    table = summarize(blocks, keys, (*MEASURES, RELATIVE), level, geometric=sizes)
    return table[table["n"] > 0]


def _is_positive(values: pd.Series) -> bool:
    """Whether a size has a logarithm in every block, of two blocks or more."""
    return len(values) > 1 and bool((np.isfinite(values) & (values > 0)).all())


def _rate(values: pd.Series) -> float:
    """Factor per block of a size: least squares of its logarithm on depth; NaN if it has none."""
    if not _is_positive(values):
        return math.nan
    return float(np.exp(np.polyfit(np.arange(len(values)), np.log(values), 1)[0]))


def _log_spread(values: pd.Series) -> float:
    """Standard deviation of the logarithm of a size over blocks; NaN if it has none."""
    return float(np.log(values).std(ddof=0)) if _is_positive(values) else math.nan


def _ratio(values: pd.Series, numerator: int, denominator: int) -> float:
    """One value over another, by their places; NaN where there is none or both are 0."""
    if not len(values):
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.divide(values.iloc[numerator], values.iloc[denominator]))


def _length(norms: pd.Series) -> float:
    """The norm of vectors whose norms these are, together, without underflow of their squares."""
    largest = norms.max(skipna=False)
    if not largest > 0 or not math.isfinite(largest):
        return float(largest)
    return float(largest * np.sqrt(np.square(norms / largest).sum()))


def rates(blocks: pd.DataFrame) -> pd.DataFrame:
    """One row per model, with what one block does to sizes and what all of them do.

    Gradients and singular values are those of all blocks but the first, whose input is the
    embedding, with a scale of another origin. Only ``block_gradient`` includes the first block.
    """
    rows = []
    for row, group in split(blocks, MODEL):
        of_block = group.set_index("block").sort_index()
        gradient, rms = of_block["gradient"].loc[2:], of_block["activation_rms"].loc[1:]
        inner = of_block.loc[2:]
        last = of_block.iloc[-1]
        row["gradient_rate"] = 1 / _rate(gradient)
        row["gradient_kept"] = _ratio(gradient, 0, -1)
        near = gradient.iloc[-1 - NEAR :] if len(gradient) > NEAR else gradient[:0]
        row["gradient_near"] = _ratio(near, 0, -1)
        row["stream_rate"] = _rate(rms)
        row["stream_growth"] = _ratio(rms, -1, 0)
        row["stream_step"] = (rms / rms.shift()).iloc[1:].max(skipna=False)
        row["last_gradient"] = last["gradient_parameters"]
        row["later_gradient_spread"] = _log_spread(gradient)
        row["later_parameter_spread"] = _log_spread(inner["gradient_parameters"])
        row["block_gradient"] = _length(of_block["gradient_parameters"].loc[1:])
        row["smallest"], row["largest"] = inner["smallest"].min(), inner["largest"].max()
        farthest = np.maximum(inner["largest"] - 1, 1 - inner["smallest"])
        row["from_identity"], row["lost"] = (farthest / inner["branch"]).max(), inner["lost"].min()
        rows.append(row)
    return with_change(pd.DataFrame(rows, columns=TABLES["rates"].names))


def with_change(of_models: pd.DataFrame) -> pd.DataFrame:
    """The models with ``gradient_change``; it is NaN unless a model was probed in both states."""
    same = [name for name in MODEL if name != "state"]
    start = select(of_models, state="start")[[*same, "block_gradient"]]
    before = of_models[same].merge(start, on=same, how="left")["block_gradient"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(np.log(of_models["block_gradient"].to_numpy(float) / before))
    return of_models.assign(
        gradient_change=np.where(of_models["state"] == "trained", change, math.nan)
    )


def by_layer(of_models: pd.DataFrame) -> pd.DataFrame:
    """One row per model and meaning of "layer": ``gradient_rate`` of a block as a factor per layer.

    A block has two sublayers, which a residual connection would span, and on its longest path four
    matrices: values, projection, and two of the MLP. The factor is a root of the block's.
    """
    parts = [
        of_models[MODEL].assign(layer=layer, factor=of_models["gradient_rate"] ** (1 / parts))
        for layer, parts in LAYERS.items()
    ]
    return pd.concat(parts, ignore_index=True)


def by_shape(of_models: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per shape, state and measure of ``rates``: n models, mean and t interval."""
    geometric = RATES.keys() - ARITHMETIC
    table = summarize(of_models, [*SHAPE, "state"], RATES, level, geometric)
    return table[table["n"] > 0]


def _at_common_rates(losses: pd.DataFrame) -> pd.DataFrame:
    """The models at rates that all placements and warm-ups of a network share."""
    network = [name for name in SHAPE if name != "placement"]
    cell = losses["placement"] + losses["warmup_steps"].map(" {}".format)
    cells = losses.assign(_cell=cell)
    at_rate = cells.groupby([*network, "learning_rate"])["_cell"].transform("nunique")
    return losses[at_rate == cells.groupby(network)["_cell"].transform("nunique")]


def over_rates(losses: pd.DataFrame) -> pd.DataFrame:
    """One row per shape, warm-up and seed that was trained at several rates."""
    table = TABLES["over_rates"]
    groups = _at_common_rates(losses).groupby(table.keys, sort=False)
    counts = groups.agg(rates=("learning_rate", "nunique"), failures=("failed", "sum"))
    return counts[counts["rates"] > 1].reset_index()[table.names]


def advantages(losses: pd.DataFrame) -> pd.DataFrame:
    """One row per model whose seed was trained at several rates.

    The largest ``advantage`` of a network's rates is its sensitivity to the rate: the mean loss
    over rates minus that at the best one (Wortsman et al. 2023, arXiv:2309.14322).
    """
    table, of_seed = TABLES["advantages"], TABLES["over_rates"].keys
    models = _at_common_rates(losses).merge(over_rates(losses), on=of_seed)
    mean = models.groupby(of_seed)["capped_loss"].transform("mean")
    return models.assign(advantage=mean - models["capped_loss"])[table.names]


def warm_ups(losses: pd.DataFrame) -> pd.DataFrame:
    """One row per shape, rate and seed that was trained with and without warm-up.

    At the rate ``tuned``, each of the two has the learning rate that was chosen for it.
    ``gained`` is the capped loss without warm-up minus that with the longest one.
    """
    tuned = choose(losses, [*SHAPE, "warmup_steps"], by="capped_loss").assign(rate="tuned")
    at_rates = losses.assign(rate=losses["learning_rate"].map("{:g}".format))
    table, rows = TABLES["warm_ups"], []
    for key, group in split(pd.concat([at_rates, tuned]), table.keys):
        capped = group.set_index("warmup_steps")["capped_loss"].sort_index()
        if capped.index[0] == 0 and len(capped) > 1:
            rows.append(key | {"gained": capped.iloc[0] - capped.iloc[-1]})
    return pd.DataFrame(rows, columns=table.names)


def trainability(losses: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per shape and schedule: capped loss over seeds, and how many models failed."""
    keys = TABLES["trainability"].keys
    table = summarize(losses, keys, ["capped_loss"], level).drop(columns="measure")
    groups = losses.groupby(keys, sort=False)
    return table.assign(
        failed=list(groups["failed"].sum()),
        diverged=list(groups["diverged_at"].count()),
        unigram=list(groups["unigram"].first()),
    )
