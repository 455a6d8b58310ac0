# Functions for the rules. This file defines no rules.
import functools
import math
import os
import sys

from snakemake.io import sourcecache_entry


def local_path(rules):
    """The project's directory, found from its rules; for a hosted repository, a copy of the commit."""
    if not hasattr(rules, "hosted_repo"):
        path = os.path.normpath(rules.join("../..").get_path_or_uri(secret_free=True))
        # resolve links, because Snakemake identifies inputs by path
        return os.path.realpath(path)
    repository = rules.hosted_repo.repo
    commit = repository.commit(rules.ref).hexsha
    copy = os.path.abspath(f".snakemake/normscope/{commit}")
    if not os.path.isdir(copy):
        repository.clone(copy).git.checkout(commit)
    return copy


def is_module():
    """Whether another workflow uses this one."""
    return not workflow.modifier.is_main_snakefile()


IS_CLUSTER = workflow.resource_settings.nodes is not None  # jobs run on other machines
# the folder with code, rules and data; results go to the working directory, which may differ
PROJECT = local_path(workflow.current_basedir)
IN_PLACE = os.path.realpath(PROJECT) == os.path.realpath(os.curdir)
# in a storage, results/ in commands is Snakemake's local copy of it
IS_STORED = workflow.storage_settings.default_storage_provider is not None


def local(path):
    """A file that each machine has, or writes at its start, so it is not taken from the storage."""
    return sourcecache_entry(path, path) if IS_STORED else path


def project(path):
    """A file of the project."""
    return local(path if IN_PLACE else os.path.join(PROJECT, path))


def data(name):
    """A file of data/: the user's prompts, questions or document, if there is such a file, or the project's."""
    path = f"data/{name}"
    is_open = name in ("prompts.yaml", "findings.yaml") or name.startswith("claims/")
    return local(path) if is_open and os.path.lexists(path) else project(path)


def documents():
    """The files of the documents: the project's and the user's, which win if names are equal."""
    folders = [os.path.join(PROJECT, "data/claims"), "data/claims"]
    names = {path.name for folder in folders for path in Path(folder).glob("*.yaml")}
    return [data(f"claims/{name}") for name in sorted(names)]


def prepend(variable, folder):
    """A search path of the environment with a folder before the others."""
    return os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))


# Jobs use this Python and the modules of this checkout, whatever else is installed or activated.
# Their commands find the project through a variable, as a shell command does not know Python names.
SOURCES = "src" if os.path.isdir(f"{PROJECT}/src") else "../.."  # of a package
SRC = os.path.normpath(os.path.join(PROJECT, SOURCES))
sys.path.insert(0, SRC)
os.environ.update(
    NORMSCOPE=PROJECT,
    PATH=prepend("PATH", os.path.dirname(sys.executable)),
    PYTHONPATH=prepend("PYTHONPATH", SRC),
)

# Numerical libraries use one thread in each job, whatever --cores allows, because the order of sums
# changes the last bits. The scripts set torch's threads. If another workflow uses this one as a
# module, its commands keep their settings.
SINGLE = "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
if not is_module():
    shell.prefix(SINGLE)

from normscope.errors import Explained

try:
    from normscope.config import load
    from normscope.io.yamlfile import overlay
except Explained as e:  # of the registry of arms
    raise WorkflowError(str(e)) from None
from normscope.custom_arms import add_arms
from normscope.io.corpus import Given, check_known_length, check_sources
from normscope.io.corpus import directory_files
from normscope.io.files import write_text
from normscope.io.pins import pins_of
from normscope.io.texts import DATASET, text_folder
from normscope.io.yamlfile import read_config
from normscope.io.provenance import closure, code_digest, load_facts, save_facts
from normscope.verdicts import findings, frozen
from normscope.machine import has_gpu, torch_finds_gpu
from normscope.pages import figures, metrics
from normscope.pilot import CODE, TRIALS, with_pilot
from normscope.studies.pilot import read_trials
from normscope.studies.pretrained.grid import check_directories, check_prompts
from normscope.studies.statements import load_checked


def result_of(make, *arguments):
    """The result of a function whose explained errors Snakemake shows without a traceback."""
    try:
        return make(*arguments)
    except Explained as e:
        raise WorkflowError(str(e)) from None


@functools.cache
def content(path):
    """What a configuration file says."""
    return result_of(read_config, Path(path))


def settings():
    """The user's settings: config.yaml, then the files and values of the command line.

    Snakemake's reader takes 010 for 8, so its result is used only if another workflow gives one.
    """
    if workflow.modifier.skip_configfile:
        return config
    given = workflow.config_settings
    has_file = os.path.lexists("config.yaml") and not given.replace_workflow_config
    here = [Path("config.yaml")] if has_file else []
    workflow.configfiles.extend(here)  # for Snakemake's report
    files = [content(os.path.realpath(path)) for path in [*here, *given.configfiles]]
    return functools.reduce(overlay, [*files, given.config], {})


def configuration(choices):
    """The project's configuration with the user's settings applied. One error lists all problems."""
    raw = overlay(content(os.path.join(PROJECT, "config.yaml")), choices)
    folders = [Path(path).parent for path in workflow.configfiles]
    result_of(add_arms, raw, [*folders, Path()], CODE)
    trials = read_trials(Path(folder, TRIALS) for folder in (PROJECT, os.curdir))
    return result_of(load, result_of(with_pilot, raw, trials))


def files_of_studies(file):
    """This file of every study that has one."""
    paths = [f"{SOURCES}/normscope/studies/{study}/{file}" for study in STUDIES]
    return [project(path) for path in paths if os.path.isfile(Path(PROJECT, path))]


def registry():
    """The entries of all figures by name. One error lists all problems."""
    folder = Path(SRC, "normscope/studies")
    known = {name: study.TABLES for name, study in STUDIES.items()}
    entries = result_of(figures.load, folder, STUDIES)
    result_of(figures.check, folder, entries, known, CONFIG)
    return entries


def note(name, text):
    """A file in results/code with this text, rewritten only if the text changes."""
    path = Path("results/code", name)
    if not path.is_file() or path.read_text().rstrip("\n") != text:
        write_text(path, text)
    return local(str(path))


@functools.cache
def code(script, study=None, stage=None):
    """A file with what determines a script's results: a digest of its code, and its pinned packages.

    The digest covers the script and all modules that it imports, without comments and docstrings.
    The file is written only if its content changes, so that the script's jobs run again, even if
    .snakemake was removed.

    A script may load a module of one study by name (``stage``, by default the script's name), or
    that module of all studies.
    """
    stage = stage or script
    loaded = {None: [], "all": STUDIES}.get(study, [study])
    files = [Path(SRC, "normscope", "studies", s, f"{stage}.py") for s in loaded]
    files = closure(
        Path(PROJECT, "scripts", f"{script}.py"), *filter(Path.is_file, files)
    )
    name = script if study in (None, "all") else "_".join([study, *Path(stage).parts])
    PINS[name] = pins_of(files, Path(PROJECT, "constraints.txt"))
    return note(f"{name}.txt", f"{code_digest(files)}\n{PINS[name]}")


DRAWN = (".pdf", ".svg", ".txt")  # of a figure; .txt is its caption
PAPER = (  # all other files of results/paper
    "summary.md summary.html summary.pdf numbers.tex claims.tex example.tex claims.json frame.json"
    " manifest.json metrics.json residual_gain.json tables plots"
).split()


def constant(value):
    """A parameter as a function: in other parameters, Snakemake reads {x} as a wildcard."""
    return lambda wildcards: value


def on_device(job):
    """A job's parameters with its device, if its results depend on the device."""
    has_device = "device" in type(job).model_fields
    return job.model_copy(update={"device": DEVICE}) if has_device else job


def recipe(jobs):
    """A job's parameters as JSON: everything that determines it except the files that it reads.

    For a mapping of jobs by name, the job is that of the wildcard {name}.
    """
    if isinstance(jobs, BaseModel):
        return constant(on_device(jobs).model_dump_json())

    def job_recipe(wildcards):
        if wildcards.name not in jobs:
            raise WorkflowError(
                f"{wildcards.name} is not in the configuration: {', '.join(jobs)}"
            )
        return on_device(jobs[wildcards.name]).model_dump_json()

    return job_recipe


def table_file(study, name):
    """A table of a study."""
    return f"results/{study}/tables/{name}.csv"


def models(study):
    """The files of all expensive results of a study."""
    folders = map(os.path.dirname, JOBS[study].records())
    files = JOBS[study].STAGES.model_files
    return [f"results/{study}/{folder}/{file}" for folder in folders for file in files]


def probes(study):
    """All tables that probing jobs of a study make."""
    names, files = JOBS[study].probes(), JOBS[study].STAGES.probe_tables
    return [f"results/{study}/probes/{n}/{file}.csv" for n in names for file in files]


def tables(study):
    """All tables of a study."""
    return [table_file(study, name) for name in JOBS[study].TABLES]


def figure_files(suffix):
    """The files of all figures with this suffix, those of the ledger first."""
    return [f"results/paper/figures/{name}{suffix}" for name in FIGURES]


def probe_files(study):
    """The files of trained models that a probing job reads."""
    part = JOBS[study]

    def files(wildcards):
        folders = [
            f"results/{study}/models/{j}" for j in part.jobs_of_probe(wildcards.name)
        ]
        return [f"{folder}/{f}" for folder in folders for f in part.STAGES.probe_reads]

    return files


def table_inputs(study):
    """The files from which the tables of a study are made."""
    return [f"results/{path}" for path in JOBS[study].table_inputs(CONFIG.settings)]


def study_files(study):
    """The files of data/ that the tables of a study use, by name."""
    return {name: data(name) for name in JOBS[study].STAGES.files}


def model_files(wildcards):
    """The local files of a pretrained model. The script reports files that are wrong."""
    model = CONFIG.pretrained.by_name().get(wildcards.name)
    folder = model and getattr(model.source, "path", None)
    paths = sorted(Path(folder).glob("*.*")) if folder else []
    return [local(str(path)) for path in paths if path.is_file()]


def cards(wildcards=None):
    """The files of the card of each norm; an error if no norm was given."""
    if CONFIG.card is None:
        raise WorkflowError(
            "card: name a norm: make card NORM=my_norm.py:MyNorm, or snakemake --cores 4 card"
            " --config 'card={norm: my_norm.py:MyNorm}'"
        )
    norms, ends = CONFIG.card.norm, ("html", "json")
    return [f"results/card/{norm}/card.{end}" for norm in norms for end in ends]


TOKENS = ("train.bin", "val.bin", "meta.pkl")  # nanoGPT's format
TEXT_FILES = (*TOKENS, "meta.json")


@functools.cache
def corpus(text):
    """The folder of a text's tokens."""
    return str(text_folder("results/dataset", text))


def nanogpt_files(text):
    """The input files of a text that is a nanoGPT-format directory."""
    directory = CONFIG.every_text[text].directory
    if directory is None:
        return []
    # if results exist, Snakemake would ignore that inputs are missing
    return [*map(local, result_of(directory_files, directory, Path(corpus(text))))]


def sources_file(text, source):
    """The file with the sources of a text, whose length is checked if it is known."""
    context, made = CONFIG.longest_context, Path(corpus(text), "meta.json")
    result_of(check_known_length, source.decides, made, context)
    key = DATASET if text == DATASET else f"texts.{text}"
    content = Given(key=key, sources=source.sources, context=context)
    if source.directory is None and text in CONFIG.texts_read and not IS_STORED:
        result_of(check_sources, content, source.sha256, made)
    return note(f"corpus_{text}.json", content.model_dump_json())


def token_files(folders):
    """The files of texts that a job reads."""
    return [f"{folder}/{name}" for folder in folders for name in TOKENS]


def corpus_of(study, form):
    """For the jobs of a study, a form of the folders of the texts that each reads, if they read any."""
    texts = JOBS[study].job_texts()
    if not JOBS[study].STAGES.reads_corpus:
        return ""
    return lambda wildcards: form([*map(corpus, texts.get(wildcards.name, [DATASET]))])


def corpora(study):
    """The tokens of all texts that the tables of a study are made from, and what is known of them."""
    part = JOBS[study]
    texts = part.texts_read if part.STAGES.reads_corpus else []
    return [f"{corpus(text)}/{name}" for text in texts for name in TEXT_FILES]


@functools.cache
def work():
    """The floating-point operations of all training jobs, by rule and name."""
    return {f"{name}_train": part.training_flops() for name, part in JOBS.items()}


def flops(rule):
    """The floating-point operations of a training job."""
    of_rule = work()[rule]
    return lambda wildcards: of_rule.get(wildcards.name, 0)


# The dataset, for which most jobs wait, and probes start before trainings, whose priority is their operations.
FIRST = 1e20


def per_attempt(amount):
    """A request that grows with each attempt; the amount may depend on the wildcards."""

    def request(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return request


SLOWEST = 1e10  # floating-point operations of a training per second, on a slow core


def minutes(rule):
    """The requested time of a training job. It grows with each attempt."""
    of_job = flops(rule)
    return per_attempt(
        lambda wildcards: 10 + math.ceil(of_job(wildcards) / SLOWEST / 60)
    )


def train_mb(part):
    """Memory of a training job of a study."""
    stacks = part.trainings()
    return per_attempt(lambda wildcards: part.train_mb(stacks[wildcards.name], DEVICE))


def timeout_s(wildcards):
    """Time limit for downloading a pretrained model, in seconds; 0 means no limit."""
    source = CONFIG.pretrained.by_name()[wildcards.name].source
    return math.ceil(getattr(source, "timeout_s", None) or 0)


def measure_mb(wildcards):
    """Memory of a measurement: the budget for weights, plus 2 GB for torch, activations and logits."""
    return round(CONFIG.pretrained.memory_gb * 1000) + 2000
