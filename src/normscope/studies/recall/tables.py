"""The tables of the recall study, as they are declared: rows, columns, meanings. No pandas."""

from typing import Any

from normscope.columns import SHARE, Column, Metric, Table, count, estimate, key, many, text
from normscope.formats import decimals
from normscope.studies import columns as shared

HERE = "normscope.studies.recall.tabulate"
PROBE = "normscope.studies.recall.probe"
TASK = key("task", "a key of tasks in config.yaml")
CELL = (TASK, shared.ARM, shared.LEARNING_RATE)
MODEL = (*CELL, shared.SEED)
EVALUATED: dict[str, Any] = {"source": f"{PROBE}.evaluate"}
LOSS = Column("loss", "cross-entropy at the query", unit="nats", **EVALUATED)
ACCURACY = Column(
    *("accuracy", "share of queries answered correctly"),
    range=SHARE,
    format=decimals(),
    **EVALUATED,
)
EIGENVALUES = {
    "sharpness": "largest eigenvalue of the Hessian of the loss",
    "preconditioned_sharpness": "the same, preconditioned as Adam does",
}
PROBED = (
    LOSS,
    ACCURACY,
    Column("temperature", "temperature at which the loss is least", **EVALUATED),
    LOSS.but(name="calibrated_loss", meaning="loss at that temperature", title="calibrated loss"),
    ACCURACY.but(
        name="accuracy_without_context",
        meaning="accuracy if the model sees the query alone",
        title="accuracy without context",
    ),
    *many(EIGENVALUES, source=f"{PROBE}.curvature"),
    Column(
        "edge",
        "preconditioned sharpness over Adam's stability limit",
        title="share of Adam's limit",
        source=f"{PROBE}.curvature",
    ),
)
RANK = Column(
    "effective_rank_query",
    "effective rank of the representations at the query",
    title="effective rank",
    source=f"{PROBE}.spectra",
)
REPRESENTATIONS = (
    RANK,
    RANK.but(
        name="effective_rank_squares_query",
        meaning="the same of their squared singular values",
        title="of squares",
    ),
    RANK.but(
        name="effective_rank_all",
        meaning="effective rank of the representations at all positions",
        title="",
    ),
)
RISE = Column(
    "rise",
    "loss at both ends of the filter-normalized slices minus that at 0",
    unit="nats",
    source=f"{HERE}.rises",
)
NO_YES = ("no", "yes")
LEVELS = {"center": NO_YES, "radius": ("sqrt(d)", "1"), "gain": NO_YES, "bias": NO_YES}
FACTORS = (
    text("center", "whether the norm centers", label={"yes": "centered", "no": "not centered"}),
    text("radius", "radius that the norm projects to", label="radius {}"),
    text("gain", "whether the norm has a learned gain"),
    text("bias", "whether the norm has a learned bias"),
)
METRICS = (*MODEL, shared.DIVERGED_AT, shared.PARAMETERS, *PROBED, *REPRESENTATIONS)
RUN = (*METRICS, RISE, *FACTORS, *shared.PILOT)
MEASURES = [column.name for column in (*PROBED, *REPRESENTATIONS, RISE)]

LEARNED = "accuracy >= 0.9"  # of a model that learned its task

TABLES = {
    "runs": Table("one trained model", RUN, f"{PROBE}.probe", learned=LEARNED),
    "chosen": Table(
        "one trained model at the learning rate that was chosen for it",
        (*RUN, shared.AT_EDGE),
        "normscope.statistics.tuning.choose",
        learned=LEARNED,
    ),
    "cells": Table(
        "one measure of an arm at a learning rate",
        (
            *CELL,
            shared.MEASURE,
            *shared.mean()[:1],
            shared.DIVERGENCES,
            *estimate("mean", "mean over models", "low", "high"),
        ),
        f"{HERE}.by_cell",
    ),
    "best": Table(
        "one arm that was trained at several learning rates",
        (
            TASK,
            shared.ARM,
            count("rates", "learning rates that were tried", title="rates tried"),
            shared.RATE.but(name="best"),
            count("n", "trained models"),
            LOSS.but(meaning="mean loss at the rates that were chosen"),
            ACCURACY.but(meaning="mean accuracy of these models", metric=Metric("recall_accuracy")),
            shared.AT_EDGE,
        ),
        f"{HERE}.best_rates",
    ),
    "curves": Table(
        "one step of a trained model",
        (*MODEL, shared.STEP, Column("train_loss", "training loss", unit="nats")),
        "normscope.train.session.train",
    ),
    "slices": Table(
        "one point of a loss slice of a trained model",
        (
            *MODEL,
            key("kind", "filter-normalized, or published"),
            key("direction", "number of the random direction", int),
            key("alpha", "offset along the direction, as published", float),
            key("offset", "distance from the trained parameters", float),
            Column("loss", "loss at that point", unit="nats"),
        ),
        f"{PROBE}.slices",
        repeats=True,  # the restored slice visits the places of two grids
    ),
    "spectra": Table(
        "one singular value of the representations of a trained model",
        (
            *MODEL,
            key("where", "query, or all positions"),
            shared.INDEX,
            Column("value", "singular value"),
        ),
        "normscope.measure.spectrum.singular_values",
    ),
    "factors": Table(
        "one effect of the factors of a norm on a response",
        (
            key("response", "measure that the effect is on"),
            key("contrast", "levels that are compared"),
            text("kind", "main effect, or interaction"),
            count("n", "seeds with a model in every cell"),
            *estimate("effect", "mean over seeds", "low", "high", format=decimals(sign=True)),
            *many(
                {
                    "joint_low": "lower end of the interval that holds jointly",
                    "joint_high": "upper end of the interval that holds jointly",
                    "alpha": "level of one interval after Bonferroni's correction",
                }
            ),
        ),
        "normscope.statistics.factorial.effects",
    ),
}
