"""The tables of the pretrained study, as they are declared: rows, columns, meanings. No pandas."""

from normscope.columns import (
    COSINE,
    SHARE,
    Column,
    Metric,
    Table,
    count,
    estimate,
    flag,
    key,
    many,
    p_value,
    text,
)
from normscope.formats import decimals
from normscope.studies.pretrained.measures import METRICS

HERE = "normscope.studies.pretrained"
OF_STREAM = "normscope.hub.inside.stream_measures"  # after a block
STATISTICS = f"{HERE}.statistics"
SIGNED, SIGNED_2 = decimals(sign=True), decimals(2, sign=True)
LOG = {"format": decimals(log=True), "unit": "natural logarithm"}
R = {"range": COSINE, "format": SIGNED}
R_OF_RHO = {"range": COSINE, "format": SIGNED_2}  # over few models

EXPERIMENT = key("experiment", "published study, or measured", title="study")
MODEL = key("model", "name of the model")
FAMILY = text("family", "family of the model; models of a family are no replicates")
NORM = text("norm", "LayerNorm or RMSNorm")
DTYPE = text("dtype", "precision of the computation")
WHO = (EXPERIMENT, MODEL, FAMILY, NORM, DTYPE)
PROMPT = key("prompt", "name of the prompt")
BOS = key("bos", "on if a token for the beginning of the text is in front")
POSITIONS = key("positions", "first, later or last position")
METRIC = key("metric", "ratio of norms that is meant")
SITE = (key("depth", "place counted from the embedding", int), key("site", "name of the place"))
USUAL = flag("usual", "whether BOS is as the model's tokenizer has it")
N_LAYERS = count("n_layers", "blocks")
PROMPTS = count("n", "prompts", title="n prompts")
LOG_GAIN = estimate("log_gain", "mean log-gain over prompts", "low", "high", **LOG)
RATIOS = many({name: f"ratio of norms: {meaning}" for name, meaning in METRICS.items()})
N_HEADS = count("n_heads", "attention heads")
HEAD_DIM = count("head_dim", "width of a head")
RHO = Column("rho", "heads over head dimension", format=decimals(4))
SUMMARY = (
    count("n", "prompts", title="n prompts"),
    Column("mean", "mean gain of the last block", format=decimals(4), metric=Metric("gain")),
    Column("sd", "standard deviation of the gain over prompts", format=decimals()),
    Column("min", "smallest gain"),
    Column("max", "largest gain"),
)

TABLES = {
    "models": Table(
        "one model of the configuration",
        (
            MODEL,
            FAMILY,
            flag("tuned", "whether it is fine-tuned"),
            text("base", "model that it was fine-tuned from"),
            text("class", "class of transformers that loads it"),
            NORM,
            N_LAYERS,
            count("n_embd", "width"),
            N_HEADS,
            count("n_kv_heads", "heads for keys and values"),
            flag("grouped_queries", "whether several heads share keys and values"),
            HEAD_DIM,
            RHO,
            Column("rho_as_published", "rho as the published code computes it"),
            count("parameters", "parameters"),
            text("stored", "format of the stored weights"),
            text("computed", "precision of the computation"),
            flag("streamed", "whether the weights were read block by block"),
            text("device", "device of the measurement"),
            count("threads", "CPU threads"),
            text("source", "where the weights are from"),
            text("commit", "revision of the source"),
            flag("tokenizer_adds_bos", "whether its tokenizer adds BOS"),
            text("missing", "why it was not measured; empty otherwise"),
        ),
        f"{HERE}.tabulate.facts",
    ),
    "gains": Table(
        "one prompt, policy and position of a model",
        (
            MODEL,
            PROMPT,
            BOS,
            POSITIONS,
            count("tokens", "tokens of the prompt"),
            *(column.but(source="normscope.hub.measurement.gain_metrics") for column in RATIOS),
            Column("entropy", "entropy of the prediction", unit="nats"),
            Column("entropy_as_published", "entropy as the published code computes it"),
            text("top_token", "most probable next token"),
            Column("top_prob", "its probability", range=SHARE),
            Column("logit_sd", "standard deviation of the logits over the vocabulary"),
            text("set", "set of the prompt"),
            text("category", "category of the prompt"),
            text("text", "text of the prompt"),
            count("words", "words of the prompt"),
            count("complexity", "complexity that its author gave it"),
        ),
        f"{HERE}.tabulate.measurements",
    ),
    "norms": Table(
        "one site of a prompt, policy and position of a model",
        (
            MODEL,
            PROMPT,
            BOS,
            POSITIONS,
            *SITE,
            Column("norm", "geometric mean of the norm of the stream"),
            Column("log_gain", "mean log-gain to the previous site"),
        ),
        f"{HERE}.tabulate.measurements",
    ),
    "sensitivity": Table(
        "one ratio, policy and position of a model, over prompts",
        (
            MODEL,
            BOS,
            POSITIONS,
            METRIC,
            PROMPTS,
            *LOG_GAIN,
            text("reads", "where the interval lies"),
            USUAL,
        ),
        f"{STATISTICS}.sensitivity",
    ),
    "inside": Table(
        "one block and policy of a model, over prompts",
        (
            MODEL,
            BOS,
            *SITE,
            PROMPTS,
            Column(
                "sink",
                "mean attention weight of later positions on position 0; empty without weights",
                range=SHARE,
                format=decimals(),
                title="attention on position 0",
                source="normscope.hub.inside.attention_measures",
            ),
            Column(
                "largest_activation",
                "largest absolute value of the stream over the median one: geometric mean",
                title="largest / median value",
                source=OF_STREAM,
            ),
            Column(
                "largest_is_first",
                "share of prompts in which that value is at position 0",
                range=SHARE,
                format=decimals(2),
                title="largest at position 0",
                source=OF_STREAM,
            ),
            Column(
                "first_norm",
                "norm of the stream at position 0 over that at later positions: geometric mean",
                title="norm at position 0 / later",
                source="normscope.hub.measurement.inside_rows",
            ),
            Column(
                "uniform_cosine",
                "mean over positions of the cosine between stream and uniform vector",
                range=COSINE,
                format=SIGNED,
                title="cosine with (1, ..., 1)",
                source=OF_STREAM,
            ),
            Column(
                "sigma",
                "standard deviation over channels at the last position: geometric mean",
                source=OF_STREAM,
            ),
            USUAL,
        ),
        f"{STATISTICS}.by_block",
    ),
    "observations": Table(
        "one prompt of a model, published or measured",
        (
            *WHO,
            text("category", "category of the prompt"),
            key("prompt", "text of the prompt"),
            count("words", "words of the prompt"),
            Column("entropy", "entropy of the prediction"),
            Column("gain", "gain of the last block"),
        ),
        f"{STATISTICS}.published_observations",
    ),
    "by_model": Table(
        "one model of a study",
        (
            *WHO,
            *SUMMARY,
            Column("t", "t of the mean gain against 1", format=SIGNED_2, title="t against 1"),
            p_value("p_one_sided", "one-sided p-value as published"),
            text("status", "reading by the published rule", title="by the published rule"),
            Column(
                "r_deviation",
                "correlation of entropy with abs(gain - 1)",
                title="r of abs(gain - 1)",
                **R,
            ),
            p_value("p_deviation", "its p-value"),
            LOG_GAIN[0].but(title="geometric mean"),
            *LOG_GAIN[1:],
            p_value("p", "p-value of the log-gain against 0"),
            *estimate("r", "correlation of entropy with the gain", title="raw r", **R),
            p_value("r_p", "its p-value"),
            Column("r_given_words", "the same given the number of words", title="given words", **R),
            p_value("p_given_words", "its p-value"),
            Column("r_without_low", "smallest r without one category", **R),
            Column("r_without_high", "largest r without one category", **R),
            Column("r_without_nonsense", "r without Nonsense", title="without Nonsense", **R),
            count("below_one", "prompts with a gain below 1"),
            p_value("p_holm", "Holm-corrected p"),
            p_value("r_p_holm", "Holm-corrected r_p", title="Holm p"),
            p_value("p_given_words_holm", "Holm-corrected p_given_words"),
            text("reads", "where the gain lies, by the corrected p-value"),
            text("base", "model that it was fine-tuned from, or not listed"),
        ),
        f"{STATISTICS}.by_model",
    ),
    "by_norm": Table(
        "one comparison of LayerNorm and RMSNorm",
        (
            key("comparison", "models that are compared"),
            key("unit", "unit of replication: model, or family"),
            count("layernorm", "units with LayerNorm", title="LayerNorm"),
            count("rmsnorm", "units with RMSNorm", title="RMSNorm"),
            *estimate(
                "difference",
                "log-gain with RMSNorm minus that with LayerNorm",
                "low",
                "high",
                format=SIGNED,
                title="difference of log-gains",
            ),
            count("prompts", "prompts that all models share"),
            p_value("p", "exact p-value over units"),
            Column("smallest", "smallest possible p-value", format=decimals(4), title="smallest p"),
        ),
        f"{STATISTICS}.by_norm",
    ),
    "h25_models": Table(
        "one model and ratio under hypothesis H25",
        (
            EXPERIMENT,
            MODEL,
            FAMILY,
            NORM,
            METRIC,
            N_LAYERS,
            RHO,
            PROMPTS,
            *estimate("gain", "gain as a factor", "low", "high"),
            p_value("p", "p-value of the gain against 1"),
            text("predicted", "side of 1 that H25 predicts"),
            text("as_published", "side of 1 of the gain"),
            flag("correct", "whether they agree"),
            text("reading", "side of 1 of the interval, or neither"),
        ),
        f"{HERE}.h25.published_models",
    ),
    "h25": Table(
        "one study and ratio under hypothesis H25",
        (
            EXPERIMENT,
            METRIC,
            count("n", "models"),
            count("right", "models that H25 predicts as published"),
            count("families", "families of models"),
            text("verdict", "verdict by the published rule"),
            *estimate(
                "share", "share of models predicted", "low", "high", format=decimals(2), range=SHARE
            ),
            count("decided", "models whose interval excludes 1"),
            count("decided_right", "those that H25 predicts"),
            Column("decided_low", "lower end of the interval of that share", range=SHARE),
            Column("decided_high", "upper end of the interval of that share", range=SHARE),
            Column("r", "correlation of rho with the gain", title="r of rho", **R_OF_RHO),
            p_value("r_p", "its p-value"),
            Column("r_given_depth", "the same given the depth", title="given depth", **R_OF_RHO),
            p_value("p_given_depth", "its p-value", title="its p", format=decimals(2)),
            Column("r_depth", "correlation of rho with the number of blocks", **R_OF_RHO),
        ),
        f"{HERE}.h25.accuracy",
    ),
    "references": Table(
        "one published number of a model",
        (
            EXPERIMENT,
            MODEL,
            text("base", "model that it was fine-tuned from"),
            FAMILY,
            NORM,
            DTYPE,
            METRIC,
            Column("value", "the published number"),
            Column("sd", "published standard deviation"),
            count("ddof", "degrees of freedom that it was computed with"),
            Column("min", "published minimum"),
            Column("max", "published maximum"),
            count("n", "prompts"),
            N_LAYERS,
            N_HEADS,
            HEAD_DIM,
            text("status", "published, or recomputed from published tables"),
            text("source", "where it was published"),
        ),
        f"{HERE}.tabulate.tabulate",
    ),
}
