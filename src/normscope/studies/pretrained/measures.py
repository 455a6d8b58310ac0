"""Names of the measures of pretrained models. No torch."""

POSITIONS = ("first", "later", "last")
METRICS = {
    "last_gain": "last block",
    "gain_hidden_states": "penultimate block",
    "gain_with_final_norm": "final norm / penultimate block",
    "total_amp": "last / first block",
    "total_amp_embedding": "last block / embedding",
}
KEY = ["prompt", "bos", "positions"]
PREDICTION = ("entropy", "entropy_as_published", "top_token", "top_prob")
GAIN_COLUMNS = [*KEY, "tokens", *METRICS, *PREDICTION]
NORM_COLUMNS = [*KEY, "depth", "site", "norm", "log_gain"]
