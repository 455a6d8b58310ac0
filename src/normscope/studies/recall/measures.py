"""Names of the measures of the recall study, which are columns of its tables. No torch."""

MEASURES = (
    "loss",
    "accuracy",
    "temperature",
    "calibrated_loss",
    "accuracy_without_context",
    "parameter_norm",
    "sharpness",
    "preconditioned_sharpness",
    "edge",
    *(
        f"{rank}_{where}"
        for where in ("query", "all")
        for rank in (
            "effective_rank",
            "effective_rank_squares",
            "stable_rank",
            "participation_ratio",
        )
    ),
)

HEIGHTS = ("rise", "hump")  # of the loss slices
SLICE = ("kind", "direction", "alpha", "offset", "loss")  # one row per point
SPECTRUM = ("where", "index", "value")  # one row per singular value
FACTORS = {  # of norms with token statistics, with their levels in order
    "center": ("no", "yes"),
    "radius": ("sqrt(d)", "1"),
    "gain": ("no", "yes"),
    "bias": ("no", "yes"),
}
