"""Columns that the tables of several studies share."""

from typing import Any

from normscope.columns import NATS, SHARE, Column, count, estimate, key, text
from normscope.formats import GENERAL, INTEGER, decimals
from normscope.nn.arms import LABELS
from normscope.nn.recipe import PLACEMENTS

ARM = key("arm", "norm, a name of the registry of arms", label=LABELS)
PLACEMENT = key("placement", f"where the norm stands: {', '.join(PLACEMENTS)}")
LEARNING_RATE = key("learning_rate", "peak learning rate", float, title="learning rate")
SEED = key("seed", "seed of the initialization and of the order of the batches", int)
MEASURE = key("measure", "name of the measure that is averaged")
DEPTH = key("depth", "blocks of the network", int, title="blocks")
INDEX = key("index", "place, counted from 0", int)

PARAMETERS = count("parameters", "trained parameters")
DIVERGED_AT = count("diverged_at", "step at which the loss stopped being finite; empty otherwise")
VAL_LOSS = Column("val_loss", "validation loss after the last step", title="loss", **NATS)
BEST_VAL_LOSS = Column("best_val_loss", "lowest validation loss during training", **NATS)
CAPPED_LOSS = Column(
    "capped_loss",
    "validation loss, at most ln V; ln V for a run that diverged",
    source="normscope.statistics.outcome.with_outcome",
    **NATS,
)
MEAN_LOSS = estimate("mean", "mean capped loss", "low", "high", title="loss", **NATS)
FAILED = count(
    "failed",
    "1 if the loss is not clearly below that of character frequencies",
    range=SHARE,
    source="normscope.statistics.outcome.with_outcome",
)
# a model of a study with protocols
PROTOCOL = key("protocol", "sizes and training, a key of protocols in config.yaml")
COMPARED = (PROTOCOL, ARM, PLACEMENT)
MODEL = (*COMPARED, LEARNING_RATE, SEED)
TEXT = text("text", "name of the text in config.yaml; dataset is the default text")

TRAINED = (
    TEXT,
    VAL_LOSS.but(source="normscope.train.session.train"),
    BEST_VAL_LOSS,
    Column("val_loss_window_sd", "standard deviation over validation windows", **NATS),
    Column("train_loss", "training loss of the last step", **NATS),
    DIVERGED_AT,
    PARAMETERS,
    CAPPED_LOSS,
    FAILED,
)
LEARNED = "failed < 0.5"  # of models most of which did not fail
UNIGRAM = Column("unigram", "loss of character frequencies", **NATS)
AT_EDGE = Column(
    "at_edge", "whether the chosen rate is the smallest or largest that was tried", bool, "note"
)

# what tuning.choose reads
PILOT = (
    Column(
        "pilot_loss",
        "mean validation loss of the pilot models at this rate; empty without pilot models",
        unit="nats",
        format=decimals(),
    ),
    Column(
        "pilot_edge",
        "whether the rate is the pilot's best for the cell, and the smallest or largest it tried",
        bool,
        "note",
    ),
)

N = count("n", "trained models")
FAILURES = count("failed", "models that failed")
DIVERGENCES = count("diverged", "models that diverged")
RATE = Column("rate", "learning rate at which most models are reported", format=GENERAL)


def mean(
    meaning: str = "mean over models", *, n: str = "trained models", **fields: Any
) -> tuple[Column, ...]:
    """Columns n, mean, low and high of a table of means."""
    return count("n", n), *estimate("mean", meaning, "low", "high", **fields)


def steps(name: str, meaning: str, **fields: Any) -> Column:
    """A number of optimizer steps among the keys."""
    return key(name, meaning, int, **{"format": INTEGER, **fields})


STEP = steps("step", "optimizer step")
