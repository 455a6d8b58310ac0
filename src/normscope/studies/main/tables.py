"""The tables of the main study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import (
    NATS,
    Column,
    Metric,
    Table,
    count,
    estimate,
    flag,
    key,
    many,
    text,
)
from normscope.formats import GENERAL, SCIENTIFIC, decimals
from normscope.studies.columns import (
    ARM,
    AT_EDGE,
    CAPPED_LOSS,
    COMPARED,
    DEPTH,
    DIVERGED_AT,
    DIVERGENCES,
    FAILED,
    FAILURES,
    LEARNED,
    MODEL,
    PILOT,
    PLACEMENT,
    RATE,
    SEED,
    STEP,
    TEXT,
    TRAINED,
    N,
    mean,
)
from normscope.studies.main.measures import (
    FOLDINGS,
    GAINS,
    HERE,
    INSIDE,
    LAWS,
    MEASURES,
    PARTS,
)

SIGNED = decimals(sign=True)

RUN = (*MODEL, *TRAINED, *PILOT, *GAINS, *LAWS, *FOLDINGS, *MEASURES)
MEAN_LOSS = estimate(
    "mean", "mean capped loss", "low", "high", title="loss", metric=Metric("loss"), **NATS
)

TABLES = {
    "runs": Table("one trained model", RUN, f"{HERE}.all_runs"),
    "chosen": Table(
        "one trained model at the learning rate that was chosen for it",
        (*RUN, AT_EDGE),
        "normscope.statistics.tuning.choose",
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
            *MODEL,
            DIVERGED_AT,
            CAPPED_LOSS,
            FAILED,
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
        "normscope.studies.main.published.published_numbers",
    ),
    "corpus": Table(
        "one text",
        (
            TEXT.but(role="key"),
            count("characters", "distinct characters"),
            count("train_tokens", "tokens of the training split"),
            count("val_tokens", "tokens of the validation split"),
        ),
        "normscope.io.dataset.encode",
    ),
    "differences": Table(
        "one trained model at its chosen learning rate, compared with models of its protocol and "
        "seed at theirs",
        (
            *MODEL,
            FAILED.but(meaning="whether it, or a model with which it is compared, failed"),
            *many(
                {
                    "above_arm": "capped loss minus that of the baseline's arm in its placement",
                    "above_placement": "capped loss minus that in the baseline's placement",
                    "above_both": "above_placement minus that of the baseline's arm: how far the "
                    "effects of arm and placement do not add up",
                    "derivatives_lead": "what the derivatives of mean and variance improve, less "
                    "what forward normalization does; known of models trained without them",
                },
                unit="nats",
                format=SIGNED,
            ),
        ),
        f"{HERE}.differences",
    ),
    "sweeps": Table(
        "one seed of a cell that was trained at several learning rates",
        (
            *COMPARED,
            SEED,
            count("rates", "learning rates"),
            count("failures", "models that failed"),
            Column(
                "excess",
                "mean capped loss over the rates minus that at the rate that the pilot chose",
                **NATS,
            ),
        ),
        f"{HERE}.sweeps",
    ),
    "blocks": Table(
        "one block of a trained model at its chosen learning rate",
        (
            *MODEL,
            key("block", "block, counted from 1", int),
            Column("entering_rms", "RMS of the stream before the block"),
            Column("activation_rms", "RMS of the stream after the block"),
            Column(
                "gradient", "norm of the loss's gradient at the block's input", format=SCIENTIFIC
            ),
            Column(
                "gradient_parameters",
                "norm of the loss's gradient by the block's parameters",
                format=SCIENTIFIC,
            ),
            Column("added_loss", "loss added if the block is left out", **NATS),
        ),
        f"{INSIDE}.block_rows",
    ),
    "norms": Table(
        "one norm of a trained model at its chosen learning rate whose sigma is frozen alone",
        (
            *MODEL,
            key("norm", "dotted name of the layer"),
            count("place", "place in the order of depth, counted from 1"),
            Column("frozen_loss", "loss added before any further step", **NATS),
            Column(
                "refined_loss",
                "loss after further steps, less that after as many steps without freezing",
                **NATS,
            ),
        ),
        f"{INSIDE}.without_norms",
    ),
    "networks": Table(
        "one untrained network",
        (
            ARM,
            PLACEMENT,
            DEPTH,
            SEED,
            Column(
                "output_change",
                "squared relative change of the output, if all parameters change a little",
                format=SCIENTIFIC,
                source="normscope.measure.depth.output_change",
            ),
            Column(
                "last_gradient",
                "norm of the loss's gradient by the last matrix of the last block",
                format=SCIENTIFIC,
                source="normscope.measure.depth.last_gradient",
            ),
        ),
        f"{INSIDE}.networks",
    ),
    "slopes": Table(
        "untrained networks of one seed, over depths",
        (
            ARM,
            PLACEMENT,
            SEED,
            *many(
                {
                    "change_slope": "slope of log(output_change) over log(depth)",
                    "gradient_slope": "slope of log(last_gradient) over log(depth)",
                }
            ),
        ),
        f"{HERE}.slopes",
    ),
    "towers": Table(
        "one tower of attention without residual connections and MLPs, at the start",
        (
            ARM,
            key(
                "causal",
                "whether a token attends only to itself and earlier ones",
                bool,
                label={True: "causal mask", False: "no mask"},
            ),
            SEED,
            Column(
                "collapse_rate",
                "mean logarithm of the factor by which a layer brings tokens together",
                source="normscope.measure.depth.collapse_rate",
            ),
        ),
        f"{INSIDE}.towers",
    ),
}
