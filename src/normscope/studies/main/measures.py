"""Columns of what is measured in trained models, one value per model. This reads no registry."""

from normscope.columns import COSINE, NATS, SHARE, Column, many

HERE = "normscope.studies.main.tabulate"
INSIDE = "normscope.studies.main.inside"

PARTS = {
    "first": ("residual gain of the first block", "first block"),
    "later": ("residual gain of a later block", "a later block"),
    "last": ("residual gain of the last block", "last block"),
}
GAINS = many(
    {f"gain_{part}": meaning for part, (meaning, _) in PARTS.items()}, source=f"{HERE}.gains"
)
LAWS = many(
    {
        "r_entropy_gain": "correlation over windows of entropy with the gain of the last block",
        "r_entropy_deviation": "correlation over windows of entropy with abs(gain - 1)",
    },
    range=COSINE,
    source="normscope.studies.main.probe.laws",
)
FOLDINGS = many(
    {
        "folding_blocks": "largest change of a logit, over the largest logit, if gain and bias of "
        "the block norms are folded into the next linear layers; known for token norms in pre-norm",
        "folding_all": "the same with those of the final norm, folded into a head that is untied",
    },
    source="normscope.measure.equivalents.logit_change",
)
MEASURES = (
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
        source="normscope.measure.depth.added_losses",
    ),
    *many(
        {
            "growth_imbalance": "standard deviation over blocks of what a block adds to the "
            "stream's mean square, over the absolute value of its mean",
            "later_growth_imbalance": "the same over blocks from the second on; known where there "
            "are three blocks or more",
        },
        source=f"{INSIDE}.of_blocks",
    ),
    *many(
        {
            "first_gradient_ratio": "norm of the gradient by the parameters of the first block, "
            "over that of the last one",
            "second_gradient_ratio": "the same of the second block; known where there are three "
            "blocks or more",
        },
        unit="times",
        source=f"{INSIDE}.of_blocks",
    ),
    Column(
        "uniform_energy",
        "width times the mean square of the cosine between the stream and the uniform vector, over "
        "tokens and blocks; 1 for random directions",
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
        source=f"{INSIDE}.without_norms",
        **NATS,
    ),
    Column(
        "refined_loss",
        "loss after further steps with frozen norms, less that after as many steps without",
        source=f"{INSIDE}.without_norms",
        **NATS,
    ),
    *many(
        {
            "one_frozen_loss": "median over the norms of the loss added if sigma of one alone is "
            "frozen at its mean, before any further step",
            "one_refined_loss": "the same of the loss after further steps, less that after as "
            "many steps without",
        },
        source=f"{INSIDE}.of_norms",
        **NATS,
    ),
)
