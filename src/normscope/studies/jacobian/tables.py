"""The tables of the jacobian study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import COSINE, SHARE, Column, Metric, Table, count, estimate, key, many, text
from normscope.formats import GENERAL, decimals
from normscope.measure.names import SURROGATES
from normscope.studies.columns import (
    ARM,
    AT_EDGE,
    CAPPED_LOSS,
    DIVERGED_AT,
    DIVERGENCES,
    FAILED,
    FAILURES,
    INDEX,
    LEARNING_RATE,
    MEASURE,
    RATE,
    SEED,
    VAL_LOSS,
    N,
    mean,
    steps,
)

HERE = "normscope.studies.jacobian.tabulate"
DECOMPOSED = "normscope.measure.decomposition.decompose"
COST = {"unit": "nats", "format": decimals(sign=True)}

PROTOCOL = key("protocol", "sizes and training, a key of protocols in config.yaml")
ATTENTION = key("attention", "softmax attention, or linear attention")
FEEDBACK = key(
    "feedback",
    "how the gradient reaches the blocks: backprop, fa or dfa",
    label={"fa": "FA", "dfa": "DFA", "backprop": "backpropagation"},
)
PENALTY = key("sigma_penalty", "weight of the penalty on sigma", float, title="penalty")
BACKWARD = key("norm_backward", "backward pass of the norms", title="surrogate")
IN = key(
    "surrogates_in",
    "norms in which the backward pass is replaced",
    title="in",
    label={"all": "all norms", "blocks": "block norms", "final": "final norm"},
)
RADIAL = key("radial_share", "share of the radial part that a surrogate leaves in", float)
SETTING = (PROTOCOL, ARM, ATTENTION, FEEDBACK, PENALTY)
VARIED = (*SETTING, BACKWARD, IN, RADIAL)
CELL = (PROTOCOL, ARM, ATTENTION, FEEDBACK, BACKWARD, IN, RADIAL, PENALTY, LEARNING_RATE)

SIGNAL = key("signal", "gradient that is decomposed: the model's own, or that of backpropagation")
VARIANT = key("variant", "as published, or corrected")
PLACE = key("place", "norms of the blocks, the final norm, or all")
D = count("d", "width that the norm normalizes over")
WHICH_NORM = (
    SIGNAL,
    VARIANT,
    key("layer", "name of the norm"),
    PLACE,
    INDEX.but(role="measure"),
    text("kind", "what the norm stands before"),
    D,
)
SHARES = {
    "r_mean": "share of the gradient's energy along 1",
    "r_radial": "share along z, the normalized activations",
    "r_tangent": "share of the rest",
}
MEASURES = (
    *many(SHARES, range=SHARE, source=DECOMPOSED, format=decimals(4)),
    *many(
        {
            f"{name}_of_batch": f"{meaning}, over the whole batch"
            for name, meaning in SHARES.items()
        },
        range=SHARE,
        source=DECOMPOSED,
    ),
    *many(
        {
            "sigma_mean": "mean standard deviation of a token before the norm",
            "sigma_std": "its standard deviation over tokens",
        },
        source=DECOMPOSED,
    ),
    *many(
        {f"cos_{rule}": f"cosine of {rule} with the exact pass" for rule in SURROGATES},
        range=COSINE,
        format=decimals(),
        source=DECOMPOSED,
    ),
    *many(
        {f"error_{rule}": f"relative error of {rule}" for rule in SURROGATES}
        | {
            "error_closed_form": "relative error of the closed form against autograd",
            "error_identity": "error of the cosine that the shares predict",
            "error_without_gain": "relative error if the gain is left out",
        },
        format=decimals(),
        source=DECOMPOSED,
    ),
    Column(
        "alignment",
        "cosine of the model's gradient with that of backpropagation",
        range=COSINE,
        format=decimals(),
        title="cos to backprop",
        source="normscope.studies.jacobian.probe.decomposed",
    ),
)
CHOSEN = (LEARNING_RATE.but(role="measure"), AT_EDGE)
DIVERGED = Column("diverged", "whether the run diverged", bool, "note")
EXACT = (
    Column("learning_rate_exact", "learning rate of the exact twin", format=GENERAL),
    AT_EDGE.but(name="at_edge_exact", meaning="whether the rate of the exact twin is at the edge"),
)
COSINES = many(
    {
        "cosine_blocks": "mean cosine of the surrogate with the exact pass at the block norms",
        "cosine_final": "the same at the final norm",
        "cosine_parameters": "cosine of the gradient of all parameters",
    },
    range=COSINE,
    format=decimals(),
)

TABLES = {
    "layers": Table(
        "one norm of a trained model",
        (
            *CELL,
            SEED,
            *WHICH_NORM,
            count("tokens", "tokens that are averaged"),
            *MEASURES,
        ),
        "normscope.studies.jacobian.probe.decomposed",
    ),
    "gradients": Table(
        "one surrogate put into a trained model",
        (
            *SETTING,
            LEARNING_RATE,
            SEED,
            SIGNAL,
            BACKWARD,
            IN,
            Column("cosine", "cosine with the exact gradient of all parameters", range=COSINE),
            Column("error", "relative error of the gradient of all parameters"),
        ),
        "normscope.studies.jacobian.probe.surrogate_gradients",
    ),
    "losses": Table(
        "one trained model",
        (*CELL, SEED, VAL_LOSS, DIVERGED_AT, CAPPED_LOSS, FAILED),
        "normscope.train.session.train",
    ),
    "chosen": Table(
        "one trained model at the rate that is best on the other seeds",
        (*VARIED, SEED, *CHOSEN, CAPPED_LOSS, FAILED, DIVERGED),
        f"{HERE}.chosen",
    ),
    "layers_by_cell": Table(
        "one measure of a norm, over models",
        (*VARIED, *WHICH_NORM, MEASURE, *mean()),
        f"{HERE}.by_layer",
    ),
    "by_place": Table(
        "the norms at one place of a trained model",
        (*VARIED, LEARNING_RATE, SIGNAL, VARIANT, PLACE, SEED, DIVERGED, D, *MEASURES),
        f"{HERE}.by_place",
    ),
    "surrogates": Table(
        "one model trained with a surrogate, and its exact twin",
        (
            *VARIED,
            SEED,
            *CHOSEN,
            *EXACT,
            CAPPED_LOSS,
            CAPPED_LOSS.but(name="capped_loss_exact", meaning="capped loss of the exact twin"),
            Column("cost", "capped loss minus that of the exact twin", **COST),
            FAILED.but(meaning="whether the model or its twin failed"),
            DIVERGED.but(meaning="whether the model or its twin diverged"),
            *COSINES,
        ),
        f"{HERE}.surrogates",
    ),
    "costs": Table(
        "one surrogate in a setting",
        (
            *VARIED,
            N,
            FAILURES,
            DIVERGENCES,
            RATE,
            AT_EDGE,
            RATE.but(
                name="rate_exact", meaning="learning rate of the exact twins", title="exact rate"
            ),
            EXACT[1],
            Column("loss", "mean capped loss of the models", unit="nats", format=decimals()),
            Column(
                "cosine",
                "mean cosine of the gradient of all parameters",
                range=COSINE,
                format=decimals(),
                title="cos of all parameters",
            ),
            *estimate(
                "mean",
                "mean cost over seeds",
                "low",
                "high",
                title="cost",
                metric=Metric("surrogate_cost"),
                macro=" ".join(f"{{{c.name}}}" for c in VARIED) + " cost",
                **COST,
            ),
        ),
        f"{HERE}.costs",
    ),
    "slopes": Table(
        "one seed of a setting and place",
        (
            *SETTING,
            IN,
            SEED,
            Column("slope", "growth of the cost from no radial part to all of it", **COST),
            FAILED,
        ),
        f"{HERE}.slopes",
    ),
    "parts": Table(
        "one part of a surrogate's cost",
        (*SETTING, BACKWARD, MEASURE, *mean("mean over seeds", **COST)),
        f"{HERE}.parts",
    ),
    "sigma": Table(
        "one step of a cell",
        (*VARIED, steps("step", "optimizer step"), MEASURE, *mean("geometric mean over models")),
        f"{HERE}.sigma",
    ),
}
