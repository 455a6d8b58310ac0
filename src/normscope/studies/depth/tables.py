"""The tables of the depth study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import Column, Metric, Table, count, estimate, key, many
from normscope.formats import SCIENTIFIC, decimals
from normscope.nn.recipe import PLACEMENTS
from normscope.studies import columns as shared

HERE = "normscope.studies.depth.tabulate"
SIGNALS = "normscope.measure.signals.signals"
JACOBIAN = "normscope.studies.depth.probe.measure"

STATES = ("start", "trained")
INITS = {"gpt2": "GPT-2's start", "gpt2_flat": "unscaled start", "xavier": "Xavier's start"}
LAYERS = {"block": 1, "sublayer": 2, "matrix": 4}  # how many a block has of each

SHAPE = (
    shared.ARM.but(title="norm"),
    shared.PLACEMENT.but(label=PLACEMENTS),
    key("residual", "whether the blocks have residual connections", bool),
    key("init", "initialization", title="start", label=INITS),
    shared.DEPTH.but(label="{} blocks"),
)
STATE = key("state", "start, or trained", label={"start": "", "trained": "trained"})
WARM_UP = shared.steps(
    "warmup_steps", "steps of warm-up", title="warm-up", label="{} steps of warm-up"
)
SCHEDULE = (
    shared.LEARNING_RATE.but(label="rate {:g}"),
    WARM_UP,
    shared.steps("steps", "optimizer steps after the warm-up"),
)
MODEL = (*SHAPE, STATE, shared.SEED)
LOSSES = (
    *(*SHAPE, *SCHEDULE, shared.SEED, shared.VAL_LOSS, shared.DIVERGED_AT),
    *(shared.CAPPED_LOSS, shared.FAILED, shared.UNIGRAM, *shared.PILOT),
)
BLOCK = key("block", "block, counted from 1; 0 is the embedding", int)
OVER_RATES = (
    count("rates", "learning rates of the seed"),
    count("failures", "rates at which the seed's model failed"),
)

# measures of a block; of the embedding, block 0, what it has
SIZES = {
    "activation_rms": "RMS of the residual stream after the block",
    "gradient": "norm of the gradient at the input of the block",
    "gradient_parameters": "norm of the gradient of the block's parameters",
}
ANGLES = {
    "angle_attention": "angle between attention's output and the stream",
    "angle_mlp": "angle between the MLP's output and the stream",
}
SPECTRUM = {
    "largest": "largest singular value of the block's Jacobian I + J",
    "smallest": "smallest singular value of the block's Jacobian I + J",
    "branch": "norm of J",
    "lost": "singular values that are 0, per token",
}
MEASURES = (*SIZES, *ANGLES, *SPECTRUM)
RELATIVE = "gradient_to_last"  # gradient over that at the last block, model by model

RATES = {  # measures of a model over its blocks
    "gradient_rate": "factor of the gradient per block towards the input",
    "gradient_kept": "gradient at the second block over that at the last",
    "gradient_near": "gradient six blocks before the last over that at the last",
    "stream_rate": "factor of the stream's RMS per block towards the output",
    "stream_growth": "RMS after the last block over that after the first",
    "stream_step": "largest factor of the stream's RMS over one block but the first",
    "last_gradient": "norm of the gradient of the last block's parameters",
    "later_gradient_spread": "standard deviation over the blocks but the first of the logarithm of "
    "the gradient",
    "later_parameter_spread": "standard deviation over the blocks but the first of the logarithm "
    "of the gradient of a block's parameters",
    "block_gradient": "norm of the gradient of the parameters of all blocks",
    "gradient_change": "absolute logarithm of block_gradient after training over that at the start",
    "smallest": "smallest singular value of I + J over the measured blocks",
    "largest": "largest singular value of I + J over the measured blocks",
    "from_identity": "largest distance of a singular value from 1, over norm of J",
    "lost": "singular values that are 0, per token: the least number",
}
HEADINGS = {  # of those on the page
    "gradient_rate": "gradient per block",
    "gradient_kept": "gradient, second to last",
    "stream_rate": "stream per block",
    "stream_growth": "stream, last to first",
    "smallest": "least singular value",
    "largest": "largest",
    "from_identity": "farthest from 1, over norm of J",
    "lost": "lost a token",
}
FACTORS = ("gradient_rate", "gradient_kept", "gradient_near", "stream_rate")
FACTORS += ("stream_growth", "stream_step")
# the means of the others are geometric
ARITHMETIC = ("smallest", "from_identity", "lost", "gradient_change")

TABLES = {
    "blocks": Table(
        "one block of a model",
        (
            *MODEL,
            BLOCK,
            *many(SIZES, source=SIGNALS),
            *many(ANGLES, unit="degrees", source=SIGNALS),
            *many(SPECTRUM, source=JACOBIAN),
        ),
        JACOBIAN,
    ),
    "losses": Table("one trained model", LOSSES, "normscope.train.session.train"),
    "chosen": Table(
        "one trained model at the schedule that was chosen for its network",
        (*LOSSES, shared.AT_EDGE),
        "normscope.statistics.tuning.choose",
        learned=shared.LEARNED,
    ),
    "by_block": Table(
        "one measure of a block, over models",
        (*SHAPE, STATE, BLOCK, shared.MEASURE, *shared.mean()),
        f"{HERE}.by_block",
    ),
    "rates": Table(
        "one model",
        (
            *MODEL,
            *(
                Column(
                    *(name, meaning),
                    title=HEADINGS.get(name, ""),
                    unit="times" if name in FACTORS else "",
                )
                for name, meaning in RATES.items()
            ),
        ),
        f"{HERE}.rates",
    ),
    "layers": Table(
        "one meaning of layer in a model",
        (
            *MODEL,
            key("layer", "block, sublayer or matrix", label="a {}"),
            Column("factor", "factor of the gradient per layer towards the input", unit="times"),
        ),
        f"{HERE}.by_layer",
    ),
    "by_shape": Table(
        "one measure of a network, over models",
        (*SHAPE, STATE, shared.MEASURE, *shared.mean(format=SCIENTIFIC)),
        f"{HERE}.by_shape",
    ),
    "over_rates": Table(
        "one seed of a network and warm-up, over learning rates",
        (*SHAPE, WARM_UP, shared.SEED, *OVER_RATES),
        f"{HERE}.over_rates",
    ),
    "advantages": Table(
        "one trained model whose seed has several learning rates",
        (
            *(*SHAPE, WARM_UP, shared.LEARNING_RATE, shared.SEED),
            Column(
                "advantage",
                "mean over the seed's rates of the capped loss minus that at this rate",
                unit="nats",
            ),
            *OVER_RATES,
        ),
        f"{HERE}.advantages",
    ),
    "warm_ups": Table(
        "one seed of a network and rate, with and without warm-up",
        (
            *SHAPE,
            key("rate", "learning rate of both as text, or tuned", label="rate {}"),
            shared.SEED,
            Column("gained", "capped loss without warm-up minus that with it", unit="nats"),
        ),
        f"{HERE}.warm_ups",
    ),
    "trainability": Table(
        "one network and schedule",
        (
            *(*SHAPE, *SCHEDULE, shared.N, shared.FAILURES, shared.DIVERGENCES),
            *estimate(
                "mean",
                "mean capped loss",
                "low",
                "high",
                unit="nats",
                format=decimals(),
                title="loss",
                metric=Metric("depth_loss"),
            ),
            shared.UNIGRAM,
        ),
        f"{HERE}.trainability",
    ),
}
