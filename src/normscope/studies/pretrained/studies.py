"""Published and measured: names of the studies, columns that say which model a row is of, BOS."""

MODEL = ["experiment", "model", "family", "norm", "dtype"]
VALIDATION = (  # the seven models of the published comparison
    "gpt2-xl gpt2-large gpt2-medium pythia-6.9b mistral-7b llama-3.1-8b gemma-7b".split()
)
FIRST_STUDIES = ("benchmark", "gpt2", "gptj")  # one measurement of each of the eight base models
BOS = {"off": "no BOS", "on": "BOS"}  # without a token for the beginning of the text, and with it
