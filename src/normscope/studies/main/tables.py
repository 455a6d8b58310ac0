"""The tables of the main study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import COSINE, Column, Metric, Table, count, estimate, flag, key, many, text
from normscope.formats import GENERAL, decimals
from normscope.studies.columns import (
    ARM,
    AT_EDGE,
    BEST_VAL_LOSS,
    CAPPED_LOSS,
    DIVERGED_AT,
    DIVERGENCES,
    FAILED,
    FAILURES,
    LEARNED,
    LEARNING_RATE,
    NATS,
    PARAMETERS,
    PILOT,
    PLACEMENT,
    RATE,
    SEED,
    STEP,
    VAL_LOSS,
    N,
    mean,
)

HERE = "normscope.studies.main.tabulate"
SIGNED = decimals(sign=True)

PROTOCOL = key("protocol", "sizes and training, a key of protocols in config.yaml")
COMPARED = (PROTOCOL, ARM, PLACEMENT)
MODEL = (*COMPARED, LEARNING_RATE, SEED)
SITE = key("site", "place in the network: embedding, block_0, ..., final_norm")
TEXT = key("text", "name of the text in config.yaml; dataset is the default text")
DEPTH = key("depth", "place counted from the embedding", int)

TRAINED = (
    VAL_LOSS.but(source="normscope.train.session.train"),
    BEST_VAL_LOSS,
    Column("val_loss_window_sd", "standard deviation over validation windows", **NATS),
    Column("train_loss", "training loss of the last step", **NATS),
    DIVERGED_AT,
    PARAMETERS,
    CAPPED_LOSS,
    FAILED,
)
PARTS = {
    "first": ("residual gain of the first block", "first block"),
    "later": ("residual gain of a later block", "a later block"),
    "last": ("residual gain of the last block", "last block"),
}
GAINS = many(
    {f"gain_{part}": meaning for part, (meaning, _) in PARTS.items()}, source=f"{HERE}.gains"
)
LAWS = many(
    {
        "r_entropy_gain": "correlation over windows of entropy with the gain of the last block",
        "r_entropy_deviation": "correlation over windows of entropy with abs(gain - 1)",
    },
    range=COSINE,
    source="normscope.studies.main.probe.laws",
)
FOLDINGS = many(
    {
        "folding_blocks": "largest change of a logit, over the largest logit, if gain and bias of "
        "the block norms are folded into the next linear layers; known for token norms in pre-norm",
        "folding_all": "the same with those of the final norm, folded into a head that is untied",
    },
    source="normscope.measure.equivalents.logit_change",
)
PROBED = (*LAWS, *FOLDINGS)  # of one model each
RUN = (*MODEL, *TRAINED, *PILOT, *GAINS, *PROBED)
CHOSEN = (*RUN, AT_EDGE)
MEAN_LOSS = estimate(
    "mean", "mean capped loss", "low", "high", title="loss", metric=Metric("loss"), **NATS
)

TABLES = {
    "runs": Table("one trained model", RUN, f"{HERE}.all_runs"),
    "chosen": Table(
        "one trained model at the learning rate that was chosen for it",
        CHOSEN,
        "normscope.statistics.tuning.chosen",
    ),
    "arms": Table(
        "one arm and placement of a protocol",
        (
            *COMPARED,
            N,
            DIVERGENCES,
            FAILURES,
            count("rates", "learning rates that were tried"),
            RATE.but(title="learning rate"),
            AT_EDGE,
            *MEAN_LOSS,
            *estimate("best", "mean of the lowest losses during training", **NATS),
            Column("alpha", "level of one difference after Bonferroni's correction"),
            count("pairs", "seeds shared with the baseline"),
            *estimate(
                "difference",
                "mean difference to the baseline, paired by seed",
                unit="nats",
                format=SIGNED,
            ),
        ),
        f"{HERE}.compare",
    ),
    "batches": Table(
        "one trained model of a protocol that differs from others in its batch size only",
        (
            *CHOSEN,
            TEXT,
            count("batch_size", "windows per step", title="batch size", label="batch size {}"),
            Column(
                "excess",
                "capped loss minus that of the same arm and seed at the largest batch size",
                unit="nats",
                format=SIGNED,
                title="above the greatest size",
            ),
        ),
        f"{HERE}.batches",
        learned=LEARNED,
    ),
    "curves": Table(
        "one step of a trained model",
        (
            *MODEL,
            STEP,
            Column(
                "train_loss",
                "training loss",
                metric=Metric("train_loss", ("protocol", "arm", "placement"), "step"),
                **NATS,
            ),
            Column("val_loss", "validation loss where it was evaluated", **NATS),
        ),
        "normscope.train.session.train",
    ),
    "gain": Table(
        "one position at one site of a trained model",
        (
            *MODEL,
            SITE,
            DEPTH,
            key("position", "position in the window", int),
            count("windows", "windows over which it is averaged"),
            Column("norm", "geometric mean of the norm of the residual stream"),
            Column("log_gain", "mean logarithm of the ratio to the norm at the previous site"),
        ),
        "normscope.studies.main.probe.stream",
    ),
    "gain_by_depth": Table(
        "one site of an arm, over its models",
        (
            *COMPARED,
            key("positions", "position 0, or all later ones"),
            DEPTH,
            SITE,
            N,
            *estimate("log_norm", "mean logarithm of the norm"),
            *estimate("log_gain", "mean log-gain"),
        ),
        f"{HERE}.by_depth",
    ),
    "gain_by_arm": Table(
        "one arm and placement of a protocol",
        (
            *COMPARED,
            N,
            *(
                column
                for part, (meaning, title) in PARTS.items()
                for column in estimate(part, meaning, title=title, format=decimals())
            ),
        ),
        f"{HERE}.by_arm",
    ),
    "published": Table(
        "one published number",
        (
            key("quantity", "what was published"),
            text("measure", "column of runs.csv that it is compared with"),
            Column("value", "the published number", format=GENERAL, title="as published"),
            count("windows", "validation windows of the published estimate"),
            text("protocol", "protocol of the published run"),
            text("source", "where it was published"),
            text("differs_because", "why the corrected number differs", title="why they differ"),
            text("settings", "file of the published settings"),
            flag("comparable", "whether the models here were trained with the same settings"),
            *mean("mean of the models here", **NATS),
        ),
        f"{HERE}.published",
    ),
    "corpus": Table(
        "one text",
        (
            TEXT,
            count("characters", "distinct characters"),
            count("train_tokens", "tokens of the training split"),
            count("val_tokens", "tokens of the validation split"),
        ),
        "normscope.io.dataset.encode",
    ),
}
