"""The tables of the study of norms, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import NATS, Column, Table, count, estimate, flag
from normscope.formats import PERCENT, decimals
from normscope.studies.columns import (
    AT_EDGE,
    COMPARED,
    FAILURES,
    LEARNED,
    LEARNING_RATE,
    MEAN_LOSS,
    MODEL,
    PILOT,
    RATE,
    TRAINED,
    N,
)

HERE = "normscope.studies.norms.tabulate"

TABLES = {
    "models": Table(
        "one trained model",
        (*MODEL, *TRAINED, *PILOT),
        "normscope.studies.outcome.trained_models",
        learned=LEARNED,
    ),
    "arms": Table(
        "one norm and placement of a protocol",
        (
            *COMPARED,
            N.but(title="models"),
            count("texts", "texts that they learned"),
            FAILURES,
            RATE.but(meaning="learning rate that the pilot models chose", title="learning rate"),
            AT_EDGE,
            *MEAN_LOSS,
            *estimate(
                "difference",
                "mean over texts of the loss above the baseline's, paired by seed",
                title="above LayerNorm",
                unit="nats",
                format=decimals(sign=True),
            ),
            Column(
                "worse",
                "share of the texts on which the loss is above the baseline's",
                format=PERCENT,
                title="texts on which it is above",
            ),
        ),
        f"{HERE}.compare",
    ),
    "rates": Table(
        "one learning rate at which pilot models of a norm and placement were trained",
        (
            *COMPARED,
            LEARNING_RATE,
            Column("loss", "mean loss of the pilot models; empty if one of them diverged", **NATS),
            flag("is_best", "whether it is the rate with the lowest loss"),
        ),
        f"{HERE}.tried",
    ),
}
