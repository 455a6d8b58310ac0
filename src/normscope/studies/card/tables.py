"""The tables of a card, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import SHARE, Column, Table, count, estimate, flag, key, many, text
from normscope.formats import GENERAL, PERCENT, decimals
from normscope.studies.columns import (
    ARM,
    AT_EDGE,
    CAPPED_LOSS,
    DEPTH,
    DIVERGED_AT,
    FAILED,
    FAILURES,
    LEARNING_RATE,
    MEAN_LOSS,
    NATS,
    PARAMETERS,
    SEED,
    TEXT,
    VAL_LOSS,
    N,
)

HERE = "normscope.studies.card.tabulate"
PROBE = "normscope.studies.card.probe"
NEAR = 0.05  # nats from the best loss, within which a learning rate is as good
SIGNED = decimals(sign=True)
TIMES = {"format": decimals(2)}
INVARIANCES = many(
    {
        "scale": "relative change of the output for tokens ten times as large",
        "shift": "for tokens shifted by one number in all channels",
        "rotation": "between rotating its input and rotating its output",
        "tokens": "of a token if the others of its window change",
        "batch": "of a window if the other windows change",
    },
    source="normscope.measure.properties.invariances",
)

PROBED = ("norm", "growth", "layers", "outputs")  # what probes measure, by norm
REGIME = key("regime", "how the models are trained, a key of budgets.yaml")
STATE = key("state", "start (before training) or trained")
PASSED = {"range": SHARE, "format": PERCENT}

TABLES = {
    "trials": Table(
        "one pilot model",
        (ARM, REGIME, LEARNING_RATE, SEED, TEXT, VAL_LOSS, CAPPED_LOSS, FAILED),
        "normscope.train.job.Job.run",
    ),
    "runs": Table(
        "one trained model at the learning rate that the pilot chose",
        (
            *(ARM, REGIME, SEED, TEXT),
            Column("learning_rate", "the pilot's best", format=GENERAL, title="learning rate"),
            *(AT_EDGE, VAL_LOSS, DIVERGED_AT, PARAMETERS, CAPPED_LOSS, FAILED),
        ),
        f"{HERE}.models",
    ),
    "compared": Table(
        "one norm under one regime, next to LayerNorm",
        (
            *(ARM, REGIME, N, FAILURES),
            Column("rate", "learning rate", format=GENERAL, title="learning rate"),
            AT_EDGE,
            *MEAN_LOSS,
            count("texts", "texts with models of both norms"),
            *estimate(
                "difference",
                "mean difference to LayerNorm with the same text and seed",
                title="minus LayerNorm",
                unit="nats",
                format=SIGNED,
            ),
            Column(
                "resolved",
                "smallest difference that as many texts would find with a probability of 0.9, by "
                "the spread of these differences",
                **NATS,
            ),
            text("reads", "what the difference shows"),
        ),
        f"{HERE}.compare",
    ),
    "sensitivity": Table(
        "one norm in the learning-rate sweep of pilot models",
        (
            ARM,
            Column("best", "learning rate with the lowest mean loss", format=GENERAL),
            Column("from", f"smallest rate within {NEAR} nats of the best", format=GENERAL),
            Column(
                "to", f"largest rate within {NEAR} nats of the best, without a gap", format=GENERAL
            ),
            Column("stable", "largest rate at which no pilot model failed", format=GENERAL),
            Column("largest", "largest rate that was tried", format=GENERAL),
        ),
        f"{HERE}.sensitivity",
    ),
    "norm": Table(
        "one norm",
        (
            ARM,
            *INVARIANCES,
            flag("elementwise", "whether a channel depends on itself alone"),
            count("parameters", "of one norm at this width"),
            text(
                "nearest",
                "the built-in arms that compute most nearly the same, if any does, with spaces "
                "between them",
            ),
            Column(
                "difference",
                "relative difference of the outputs to those of the first of them with the same "
                "parameters",
            ),
            Column(
                "large",
                "the same for large tokens, to which eps does not matter; missing for elementwise "
                "norms, which have none",
            ),
            flag(
                "starts",
                "whether the parameters start as those of this arm; missing if they are others",
                title="same start",
            ),
        ),
        f"{PROBE}.measure_alone",
    ),
    "growth": Table(
        "one untrained network",
        (
            *(ARM, DEPTH, key("init", "initialization: gpt2 or xavier"), SEED),
            Column("stream", "RMS of the stream after the last block over that after the first"),
            Column("gradient", "gradient at the input of the second block over that of the last"),
        ),
        f"{PROBE}.growth",
    ),
    "layers": Table(
        "one norm layer of one model",
        (
            *(ARM, STATE, SEED, key("layer", "name of the layer in the model")),
            *many(
                {
                    "mean_in": "share of the gradient's energy along 1, at the norm's output",
                    "radial_in": "share along the token, at the norm's output",
                    "rest_in": "share orthogonal to both, at the norm's output",
                    "mean_out": "share along 1, at its input",
                    "radial_out": "share along the token, at its input",
                    "rest_out": "share orthogonal to both, at its input",
                },
                **PASSED,
            ),
            Column("input_rms", "root mean square of the norm's input", title="input RMS"),
            Column("largest", "largest singular value of its Jacobian, mean over tokens"),
            Column("smallest", "smallest singular value of its Jacobian, mean over tokens"),
            Column(
                "saturated",
                "share of channels at which a bounded elementwise norm is nearly flat",
                source="normscope.measure.properties.saturation",
                **PASSED,
            ),
        ),
        f"{PROBE}.through_norms",
    ),
    "outputs": Table(
        "one trained model",
        (
            *(ARM, SEED),
            Column("last_gain", "residual gain of the last block, geometric mean over tokens"),
            Column("logit_rms", "root mean square of the centered logits"),
            Column("logit_max", "largest absolute logit"),
        ),
        f"{PROBE}.in_evaluation",
    ),
}
# of one machine, so that they are not among the tables, which are the same for the same inputs
SPEED = Table(
    "one norm at one width",
    (
        ARM,
        key("width", "channels", int),
        key("mode", "eager or compiled"),
        *many(
            {
                "forward": "time of the forward pass over that of torch's LayerNorm",
                "backward": "time of the backward pass over that of torch's LayerNorm",
                "to_layernorm": "time of both passes over that of torch's LayerNorm",
                "to_rmsnorm": "time of both passes over that of torch's RMSNorm",
            },
            **TIMES,
        ),
        *many(
            {
                "saved": "numbers kept for the backward pass, per channel of a token",
                "saved_layernorm": "those that torch's LayerNorm keeps",
                "saved_rmsnorm": "those that torch's RMSNorm keeps",
            },
            **TIMES,
        ),
        Column("step", "share of a training step at the sizes of regime short", **PASSED),
    ),
    "normscope.studies.card.speed.speed",
)
