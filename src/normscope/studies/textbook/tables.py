"""The tables of the textbook study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import SHARE, Column, Table, count, flag, key, many, text
from normscope.formats import decimals
from normscope.studies.columns import ARM, INDEX, SEED, mean

HERE = "normscope.studies.textbook.tabulate"
RATIO = Column(
    "ratio", "norm of the tutorial's output over that of torch's, with eps = 0", format=decimals(4)
)

TABLES = {
    "scratch": Table(
        "one width",
        (
            key("d", "width that is normalized over", int),
            RATIO.but(title="output, ratio"),
            RATIO.but(name="theory", meaning="what the ratio must be", title="sqrt((d - 1)/d)"),
            Column("error_forward", "relative error of the tutorial's output", title="error"),
            Column(
                "error_backward", "relative error of its gradient", title="error of the gradient"
            ),
            Column(
                "error_ours",
                "largest absolute error of this project's LayerNorm",
                title="error of this project's",
            ),
            flag("finite", "whether the tutorial's output and gradient are finite"),
        ),
        f"{HERE}.scratch",
        title="LayerNorm from scratch",
    ),
    "epsilon": Table(
        "one size of a token",
        (
            key("token_std", "standard deviation of the token", float),
            *many(
                {
                    "textbook": "standard deviation of the tutorial's output",
                    "torch": "standard deviation of torch's output",
                }
            ),
        ),
        f"{HERE}.epsilon",
    ),
    "affine": Table(
        "one norm of a trained model",
        (
            SEED,
            key("layer", "name of the norm"),
            INDEX.but(role="measure"),
            count("d", "width that is normalized over"),
            count("tokens", "tokens that are averaged"),
            *many(
                {
                    "mean_before": "mean absolute mean of a token before gain and bias",
                    "std_before": "mean standard deviation of a token before gain and bias",
                    "mean_after": "the mean after gain and bias",
                    "std_after": "the standard deviation after gain and bias",
                    "std_after_sd": "standard deviation of the latter over tokens",
                    "gain_min": "smallest gain",
                    "gain_max": "largest gain",
                }
            ),
            Column("recovered", "R^2 of the input from the best gain and bias"),
        ),
        f"{HERE}.affine",
    ),
    "sharing": Table(
        "one norm and mode",
        (
            ARM,
            key("mode", "training, or evaluation"),
            *many(
                {
                    "itself": "1 if an output depends on its input",
                    "same_token": "other channels of its token that it depends on",
                    "same_window": "other tokens of its window, in its channel",
                    "other_windows": "tokens of other windows, in its channel",
                    "elsewhere": "all other inputs",
                }
            ),
        ),
        f"{HERE}.sharing",
    ),
    "batches": Table(
        "one batch size and norm",
        (
            key("tokens", "tokens of the batch", int),
            ARM,
            *mean("mean relative change of a token by its batch", n="batches"),
            Column("theory", "what the mean must be for Gaussian tokens"),
            text("error", "why the layer refuses the batch"),
        ),
        f"{HERE}.batches",
    ),
    "wild": Table(
        "one feature of the tutorial's vector",
        (
            INDEX,
            *many(
                {
                    "value": "the feature",
                    "normalized": "after normalization",
                    "outlier": "the feature, with an outlier",
                    "outlier_normalized": "that after normalization",
                }
            ),
        ),
        f"{HERE}.wild",
    ),
    "wild_summary": Table(
        "one vector",
        (
            key("vector", "a column of wild.csv"),
            *many(
                {
                    "mean": "mean",
                    "std": "standard deviation",
                    "std_unbiased": "unbiased standard deviation",
                    "largest": "largest absolute value",
                }
            ),
            Column("share", "share of the largest feature in the energy", range=SHARE),
            Column("bound", "largest possible value after normalization, sqrt(d - 1)"),
        ),
        f"{HERE}.wild",
    ),
    "undo": Table(
        "one distribution of tokens",
        (
            key("sd_ln_scale", "standard deviation of the logarithm of a token's scale", float),
            key("sd_mean", "standard deviation of a token's mean", float),
            Column("r2", "R^2 of the tokens from the best gain and bias", range=SHARE),
            Column("theory", "what R^2 must be"),
        ),
        f"{HERE}.undo",
    ),
}
