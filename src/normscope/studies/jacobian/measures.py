"""Names of what is measured of a norm's backward pass: columns of its tables. No torch."""

from normscope.measure.names import SHARES, SURROGATES

LAYER = ("signal", "variant", "layer", "place", "index", "kind", "d", "tokens")
MEASURES = (
    *SHARES,
    *(f"{share}_of_batch" for share in SHARES),
    "sigma_mean",
    "sigma_std",
    *(f"cos_{rule}" for rule in SURROGATES),
    *(f"error_{rule}" for rule in SURROGATES),
    "error_closed_form",
    "error_identity",
    "error_without_gain",
    "alignment",
)
PLACES = ("block", "final", "all")  # of norms: those of the blocks, the one before the head, both
KINDS = ("signal", "variant", "place")  # what a mean over norms is of
COSTS = ("val_loss", "val_loss_exact", "cost", "diverged")  # of a model and its exact twin
PREDICTORS = {
    "left_in_blocks": "energy left in, block norms",
    "left_in_final": "energy left in, final norm",
    "cosine_blocks": "1 - cosine, block norms",
    "cosine_final": "1 - cosine, final norm",
    "error_blocks": "relative error, block norms",
    "error_final": "relative error, final norm",
    "cosine_parameters": "1 - cosine, all parameters",
}
GRADIENT = ("signal", "norm_backward", "surrogates_in", "cosine", "error")
