"""Names of the measures of a norm's backward pass, which are columns of tables. No torch."""

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
# of a model with a surrogate and its exact twin
COSTS = ("capped_loss", "capped_loss_exact", "cost", "failed", "diverged")
COSINES = ("cosine_blocks", "cosine_final", "cosine_parameters")  # of the surrogate, in the twin
GRADIENT = ("signal", "norm_backward", "surrogates_in", "cosine", "error")
