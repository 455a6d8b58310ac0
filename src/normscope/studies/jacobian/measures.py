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
GRADIENT = ("signal", "norm_backward", "surrogates_in", "cosine", "error")
