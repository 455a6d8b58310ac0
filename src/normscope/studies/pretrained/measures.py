"""Names of the pretrained study: measures, published studies, BOS. No torch."""

POSITIONS = ("first", "later", "last")
METRICS = {
    "last_gain": "last block",
    "gain_hidden_states": "penultimate block",
    "gain_with_final_norm": "final norm / penultimate block",
    "total_amp": "last / first block",
    "total_amp_embedding": "last block / embedding",
}
KEY = ["prompt", "bos", "positions"]
PREDICTION = ("entropy", "entropy_as_published", "top_token", "top_prob", "logit_sd")
GAIN_COLUMNS = [*KEY, "tokens", *METRICS, *PREDICTION]
NORM_COLUMNS = [*KEY, "depth", "site", "norm", "log_gain"]
INSIDE = {  # what happens inside a block, by how it is averaged
    "sink": "arithmetic",
    "largest_activation": "geometric",
    "largest_is_first": "arithmetic",
    "first_norm": "geometric",
    "uniform_cosine": "arithmetic",
    "sigma": "geometric",
}
INSIDE_COLUMNS = ["prompt", "bos", "depth", "site", *INSIDE]
# columns of the tables of a probe
PROBED = {"gains": GAIN_COLUMNS, "norms": NORM_COLUMNS, "inside": INSIDE_COLUMNS}
BOS = {"off": "no BOS", "on": "BOS"}  # BOS: a token for the beginning of the text

MODEL = ["experiment", "model", "family", "norm", "dtype"]  # columns that describe a model
VALIDATION = (  # the seven models of the published comparison
    "gpt2-xl gpt2-large gpt2-medium pythia-6.9b mistral-7b llama-3.1-8b gemma-7b".split()
)
CROWDED = 0.2  # heads over head dimension from which H25 predicts a gain below 1
FIRST_STUDIES = ("benchmark", "gpt2", "gptj")  # one measurement of each of the eight base models
