# Functions that name the files of the texts that models are trained on. This file defines no rules.
from normscope.io.corpus import (
    Given,
    check_known_length,
    check_sources,
    directory_files,
)
from normscope.io.texts import DATASET, text_folder

TOKENS = ("train.bin", "val.bin", "meta.pkl")  # nanoGPT's format
TEXT_FILES = (*TOKENS, "meta.json")


def corpus(text):
    """The folder of a text's tokens."""
    return str(text_folder("results/dataset", text))


def nanogpt_files(text):
    """The input files of a text that is a nanoGPT-format directory."""
    directory = CONFIG.every_text[text].directory
    if directory is None:
        return []
    # if results exist, Snakemake would ignore that inputs are missing
    files = checked(directory_files, directory, Path(corpus(text)))
    return [as_input(name) for name in files]


def sources_file(text, source):
    """The file with the sources of a text, whose length is checked if it is known."""
    context, made = CONFIG.longest_context, Path(corpus(text), "meta.json")
    checked(check_known_length, source.decides, made, context)
    is_default = text == DATASET
    name = "corpus.json" if is_default else f"corpus_{text}.json"
    key = DATASET if is_default else f"texts.{text}"
    content = Given(key=key, sources=source.sources, context=context)
    if source.directory is None and text in CONFIG.texts_read and not STORED:
        checked(check_sources, content, source.sha256, made)
    return note(name, content.model_dump_json())


def corpus_of(study):
    """The folder of the text that a job of a study reads; None if its jobs read none."""
    texts = JOBS[study].job_texts()
    if not JOBS[study].STAGES.reads_corpus:
        return None
    return lambda wildcards: corpus(texts.get(wildcards.name, DATASET))


def corpus_files(study):
    """The tokens that a job of a study reads."""
    folder = corpus_of(study)
    if folder is None:
        return []
    return lambda wildcards: [f"{folder(wildcards)}/{name}" for name in TOKENS]


def corpus_flag(study):
    """The flag that gives a job of a study the tokens."""
    folder = corpus_of(study)
    return "" if folder is None else lambda wildcards: f"--data {folder(wildcards)}"


def corpora(study):
    """The tokens of all texts that the tables of a study are made from, and what is known of them."""
    part = JOBS[study]
    texts = [DATASET, *part.job_texts().values()] if part.STAGES.reads_corpus else []
    return [f"{corpus(t)}/{name}" for t in dict.fromkeys(texts) for name in TEXT_FILES]
