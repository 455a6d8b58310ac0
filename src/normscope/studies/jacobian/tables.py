"""The tables of the jacobian study, as they are declared: rows, columns, meanings. No pandas."""

from typing import Any

from normscope.columns import COSINE, SHARE, Column, Metric, Table, count, estimate, key, many, text
from normscope.formats import GENERAL, decimals
from normscope.measure.names import SURROGATES
from normscope.studies import columns as shared

HERE = "normscope.studies.jacobian.tabulate"
DECOMPOSED = "normscope.measure.decomposition.decompose"
PROBED = "normscope.studies.jacobian.probe.decompose_norms"
COST = {"unit": "nats", "format": decimals(sign=True)}
COS: dict[str, Any] = {"range": COSINE, "format": decimals()}

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
SETTING = (PROTOCOL, shared.ARM, ATTENTION, FEEDBACK, PENALTY)
VARIED = (*SETTING, BACKWARD, IN, RADIAL)
CELL = (*SETTING[:-1], BACKWARD, IN, RADIAL, PENALTY, shared.LEARNING_RATE)

SIGNAL = key("signal", "gradient that is decomposed: the model's own, or that of backpropagation")
VARIANT = key("variant", "as published, or corrected")
PLACE = key("place", "norms of the blocks, the final norm, or all")
D = count("d", "width that the norm normalizes over")
WHICH_NORM = (
    *(SIGNAL, VARIANT, key("layer", "name of the norm"), PLACE),
    *(shared.INDEX.but(role="measure"), text("kind", "what the norm stands before"), D),
)
SHARES = {
    "r_mean": "share of the gradient's energy along 1",
    "r_radial": "share along z, the normalized activations",
    "r_tangent": "share of the rest",
}
SHARES_OF_BATCH = {
    f"{name}_of_batch": f"{what}, over the whole batch" for name, what in SHARES.items()
}
SIGMAS = {
    "sigma_mean": "mean standard deviation of a token before the norm",
    "sigma_std": "its standard deviation over tokens",
}
ERRORS = {f"error_{rule}": f"relative error of {rule}" for rule in SURROGATES} | {
    "error_closed_form": "relative error of the closed form against autograd",
    "error_identity": "error of the cosine that the shares predict",
    "error_without_gain": "relative error if the gain is left out",
}
MEASURED = (
    *many(SHARES, range=SHARE, source=DECOMPOSED, format=decimals(4)),
    *many(SHARES_OF_BATCH, range=SHARE, source=DECOMPOSED),
    *many(SIGMAS, source=DECOMPOSED),
    *many(
        {f"cos_{rule}": f"cosine of {rule} with the exact pass" for rule in SURROGATES},
        source=DECOMPOSED,
        **COS,
    ),
    *many(ERRORS, format=decimals(), source=DECOMPOSED),
    Column(
        "alignment",
        "cosine of the model's gradient with that of backpropagation",
        title="cos to backprop",
        source=PROBED,
        **COS,
    ),
)
MEASURES = [column.name for column in MEASURED]
CHOSEN = (shared.LEARNING_RATE.but(role="measure"), shared.AT_EDGE)
DIVERGED = Column("diverged", "whether the run diverged", bool, "note")
AT_EDGE_EXACT = shared.AT_EDGE.but(
    name="at_edge_exact", meaning="whether the rate of the exact twin is at the edge"
)
OUTCOME = (shared.CAPPED_LOSS, shared.FAILED)

# columns of the files of a probing job, all of whose models are of one cell
LAYERS = (shared.SEED, *WHICH_NORM, count("tokens", "tokens that are averaged"), *MEASURED)
GRADIENTS = (
    *(shared.SEED, SIGNAL, BACKWARD, IN),
    Column("cosine", "cosine with the exact gradient of all parameters", range=COSINE),
    Column("error", "relative error of the gradient of all parameters"),
)

TABLES = {
    "layers": Table("one norm of a trained model", (*CELL, *LAYERS), PROBED),
    "gradients": Table(
        "one surrogate put into a trained model",
        (*SETTING, shared.LEARNING_RATE, *GRADIENTS),
        "normscope.studies.jacobian.probe.surrogate_gradients",
    ),
    "losses": Table(
        "one trained model",
        (*CELL, shared.SEED, shared.VAL_LOSS, shared.DIVERGED_AT, *OUTCOME, *shared.PILOT),
        "normscope.train.session.train",
    ),
    "chosen": Table(
        "one trained model at the learning rate that was chosen for it",
        (*VARIED, shared.SEED, *CHOSEN, *OUTCOME, DIVERGED),
        f"{HERE}.choose_rates",
    ),
    "layers_by_cell": Table(
        "one measure of a norm, over models",
        (
            *(*VARIED, *WHICH_NORM, shared.MEASURE),
            *shared.mean("mean over models, geometric of r_mean and r_radial"),
        ),
        f"{HERE}.by_layer",
    ),
    "by_place": Table(
        "the norms at one place of a trained model",
        (
            *(*VARIED, shared.LEARNING_RATE, SIGNAL, VARIANT, PLACE, shared.SEED),
            *(DIVERGED, D, *MEASURED),
        ),
        f"{HERE}.by_place",
    ),
    "surrogates": Table(
        "one model trained with a surrogate, and its exact twin",
        (
            *(*VARIED, shared.SEED, *CHOSEN),
            Column("learning_rate_exact", "learning rate of the exact twin", format=GENERAL),
            AT_EDGE_EXACT,
            shared.CAPPED_LOSS,
            shared.CAPPED_LOSS.but(
                name="capped_loss_exact", meaning="capped loss of the exact twin"
            ),
            Column("cost", "capped loss minus that of the exact twin", **COST),
            shared.FAILED.but(meaning="whether the model or its twin failed"),
            DIVERGED.but(meaning="whether the model or its twin diverged"),
            Column(
                "cosine_parameters",
                "cosine of the gradient of all parameters with the exact one, in the exact twin",
                **COS,
            ),
        ),
        f"{HERE}.surrogates",
        learned=shared.LEARNED,
    ),
    "costs": Table(
        "one surrogate in a setting",
        (
            *(*VARIED, shared.N, shared.FAILURES, shared.DIVERGENCES),
            *(shared.RATE, shared.AT_EDGE),
            shared.RATE.but(
                name="rate_exact", meaning="learning rate of the exact twins", title="exact rate"
            ),
            AT_EDGE_EXACT,
            Column("loss", "mean capped loss of the models", unit="nats", format=decimals()),
            Column(
                "cosine",
                "mean cosine of the gradient of all parameters",
                title="cos of all parameters",
                **COS,
            ),
            *estimate(
                "mean",
                "mean cost over seeds",
                "low",
                "high",
                title="cost",
                metric=Metric("surrogate_cost"),
                **COST,
            ),
        ),
        f"{HERE}.costs",
    ),
    "slopes": Table(
        "one seed of a setting and place",
        (
            *(*SETTING, IN, shared.SEED),
            Column("slope", "growth of the cost from no radial part to all of it", **COST),
            shared.FAILED,
        ),
        f"{HERE}.slopes",
    ),
    "parts": Table(
        "one part of a surrogate's cost",
        (*SETTING, BACKWARD, shared.MEASURE, *shared.mean("mean over seeds", **COST)),
        f"{HERE}.parts",
    ),
    "sigma": Table(
        "one step of a cell",
        (
            *(*VARIED, shared.STEP, shared.MEASURE),
            *shared.mean("geometric mean over models"),
        ),
        f"{HERE}.sigma",
    ),
}
