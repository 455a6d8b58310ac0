"""The tables of the literature study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import COSINE, SHARE, Column, Table, count, key, many
from normscope.formats import SCIENTIFIC, decimals
from normscope.studies.columns import (
    ARM,
    AT_EDGE,
    BEST_VAL_LOSS,
    CAPPED_LOSS,
    DEPTH,
    DIVERGED_AT,
    FAILED,
    FAILURES,
    LEARNING_RATE,
    MEAN_LOSS,
    NATS,
    PARAMETERS,
    PILOT,
    PLACEMENT,
    RATE,
    SEED,
    STEP,
    VAL_LOSS,
    N,
)

HERE = "normscope.studies.literature.tabulate"
PROBE = "normscope.studies.literature.probe"
SIGNED = decimals(sign=True)

PROTOCOL = key("protocol", "sizes and training, a key of literature.protocols in config.yaml")
CELL = (PROTOCOL, ARM, PLACEMENT)
MODEL = (*CELL, LEARNING_RATE, SEED)

TRAINED = (
    VAL_LOSS.but(source="normscope.train.session.train"),
    BEST_VAL_LOSS,
    DIVERGED_AT,
    PARAMETERS,
    CAPPED_LOSS,
    FAILED,
    *PILOT,
)
# measured in the trained models
MEASURES = (
    Column("fitted_loss", "loss on windows of the training text, in evaluation mode", **NATS),
    Column("stream_growth", "RMS of the stream after the last block, over that after the first"),
    Column(
        "gradient_spread",
        "standard deviation over blocks of the logarithm of the gradient's norm at a block's input",
    ),
    Column(
        "parameter_gradient_spread",
        "standard deviation over blocks of the logarithm of the gradient's norm by the block's "
        "parameters",
    ),
    Column(
        "free_blocks",
        "share of the blocks but the first whose removal adds less than 0.05 nats",
        range=SHARE,
        source="normscope.measure.skipping.added_losses",
    ),
    *many(
        {
            "growth_imbalance": "standard deviation over blocks of what a block adds to the "
            "stream's mean square, over the absolute value of its mean",
            "later_growth_imbalance": "the same over blocks from the second on; known where there "
            "are three blocks or more",
        },
        source=f"{PROBE}.of_blocks",
    ),
    *many(
        {
            "first_gradient_ratio": "norm of the gradient by the parameters of the first block, "
            "over that of the last one",
            "second_gradient_ratio": "the same of the second block; known where there are three "
            "blocks or more",
        },
        unit="times",
        source=f"{PROBE}.of_blocks",
    ),
    Column(
        "uniform_cosine",
        "mean over tokens and blocks of the cosine between the stream and the uniform vector",
        range=COSINE,
    ),
    Column(
        "uniform_energy",
        "width times the mean square of that cosine, 1 for random directions",
    ),
    Column(
        "unselectable",
        "share of attention's inputs that no query can give the highest score of their window; "
        "measured where a window has more tokens than dimensions",
        range=SHARE,
        source="normscope.measure.attention.unselectable",
    ),
    Column(
        "unselectable_keys",
        "share of the keys of a head, after their norm if they have one, that no query can give "
        "the highest score of their window; measured where a window has more tokens than "
        "dimensions",
        range=SHARE,
        source="normscope.measure.attention.unselectable_keys",
    ),
    Column(
        "largest_score",
        "largest absolute attention score before the softmax",
        source="normscope.measure.attention.largest_score",
    ),
    Column(
        "sink",
        "mean share of attention that later positions give to the first one",
        range=SHARE,
        source="normscope.measure.attention.first_share",
    ),
    Column(
        "largest_activation",
        "largest absolute entry of the stream after a block, over the median",
    ),
    Column(
        "recentring_change",
        "largest change of a logit, over the largest logit, if LayerNorms become RMSNorms in a "
        "model with a centered stream; known for LayerNorm in pre-norm with a final norm, and "
        "without norms of the embedding, of queries and of keys",
        source="normscope.measure.equivalents.logit_change",
    ),
    Column(
        "frozen_loss",
        "loss added if sigma of all norms is frozen at its mean, before any further step",
        source=f"{PROBE}.without_norms",
        **NATS,
    ),
    Column(
        "refined_loss",
        "loss after further steps with frozen norms, less that after as many steps without",
        source=f"{PROBE}.without_norms",
        **NATS,
    ),
    *many(
        {
            "one_frozen_loss": "median over the norms of the loss added if sigma of one alone is "
            "frozen at its mean, before any further step",
            "one_refined_loss": "the same of the loss after further steps, less that after as "
            "many steps without",
        },
        source=f"{PROBE}.of_norms",
        **NATS,
    ),
)
GROWTH = many(
    {
        "sigma_growth": "logarithm of the standard deviation of a token before the final norm at "
        "the last step, over that at the first recorded one",
        "late_sigma_growth": "the same over that at step 100",
        "logit_scale": "logarithm of the standard deviation of the logits over the vocabulary at "
        "the last step",
    },
    source=f"{HERE}.growth",
)
RUN = (*MODEL, *TRAINED, *GROWTH, *MEASURES)

TABLES = {
    "runs": Table("one trained model", RUN, f"{HERE}.all_runs"),
    "chosen": Table(
        "one trained model at the learning rate that was chosen for it",
        (*RUN, AT_EDGE),
        "normscope.statistics.tuning.chosen",
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
    "cells": Table(
        "one arm and placement of a protocol, at the learning rate that was chosen for it",
        (*CELL, N, FAILURES, RATE.but(title="learning rate"), AT_EDGE, *MEAN_LOSS),
        f"{HERE}.means",
    ),
    "sweeps": Table(
        "one seed of a cell that was trained at several learning rates",
        (
            *CELL,
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
        f"{PROBE}.block_rows",
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
        f"{PROBE}.without_norms",
    ),
    "scales": Table(
        "one recorded step of a trained model at its chosen learning rate",
        (
            *MODEL,
            STEP,
            Column(
                "sigma",
                "standard deviation of a token before the final norm, mean over the step's batch",
            ),
            Column(
                "last_gain",
                "factor by which the last block changes the norm of the residual stream, geometric "
                "mean over all positions but the first",
            ),
            Column(
                "logit_sd",
                "standard deviation of the logits over the vocabulary, mean over the step's batch",
            ),
        ),
        "normscope.measure.signals.scales",
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
                source="normscope.measure.starting.output_change",
            ),
            Column(
                "last_gradient",
                "norm of the loss's gradient by the last matrix of the last block",
                format=SCIENTIFIC,
                source="normscope.measure.starting.last_gradient",
            ),
        ),
        f"{PROBE}.networks",
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
                source="normscope.measure.starting.collapse_rate",
            ),
        ),
        f"{PROBE}.towers",
    ),
}
