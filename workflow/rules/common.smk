# Functions for the rules; no rules in here.
import functools
import hashlib
import math
import os
import shlex
import sys

# jobs run on this Python and this tree's modules, whatever else is installed or activated
SRC = os.path.abspath("src")
for unfit, reader in {os.pathsep: "PYTHONPATH", "{": "Snakemake"}.items():
    if unfit in SRC:
        raise WorkflowError(
            f"{SRC}: {reader} reads {unfit} otherwise; move the project"
        )
sys.path.insert(0, SRC)
os.environ.update(
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
    PYTHONPATH=os.pathsep.join([SRC, os.environ.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    ),
)

from normscope import cost
from normscope.config import ConfigError, load
from normscope.pins import pinned
from normscope.provenance import closure


def validated(raw):
    """The configuration, or one error that names all that is wrong with it."""
    try:
        return load(raw)
    except ConfigError as e:
        raise WorkflowError(str(e)) from None


@functools.cache
def code(script):
    """A script and the modules that it imports: their content decides whether a job runs again."""
    return [os.path.relpath(path) for path in closure(Path("scripts", f"{script}.py"))]


def pins(script):
    """The pinned packages that a script's results rest on: a changed one makes its jobs run again."""
    return pinned(map(Path, code(script)), Path("constraints.txt"))


def scripts():
    """Names of the scripts that are rules."""
    return sorted(path.stem for path in Path("scripts").glob("*.py"))


def as_input(path):
    """A file as Snakemake can name it: where it would read {x} as a wildcard, by a link."""
    if "{" not in path:
        return path
    target = os.path.abspath(path)
    link = Path(".snakemake/links", hashlib.sha256(target.encode()).hexdigest())
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)
    return str(link)


def nanogpt_files(directory):
    """What the dataset is made from when it is a nanoGPT-format directory."""
    if directory is None:
        return []
    files = [f"{directory}/{name}" for name in ("train.bin", "val.bin", "meta.pkl")]
    missing = [name for name in files if not os.path.isfile(name)]
    # with results there, Snakemake would pass over inputs that are not
    if missing:
        raise WorkflowError(f"dataset.directory: missing {', '.join(missing)}")
    return [as_input(name) for name in files]


def verbatim(value):
    """A parameter as it is: in one that is no function, Snakemake would read {x} as a wildcard."""
    return lambda wildcards: value


def flags(model, prefix=""):
    """A pydantic model as command-line flags, as scripts/*.py read them."""
    words = []
    for key, value in model:
        flag = f"{prefix}{key}".replace("_", "-")
        if isinstance(value, BaseModel):
            words += [flags(value, f"{flag}.")]
        elif isinstance(value, bool):
            words += [f"--{flag}" if value else f"--no-{flag}"]
        elif value is not None and value != []:
            words += [f"--{flag}", shlex.quote(str(value))]
    return " ".join(words)


def run_flags(wildcards):
    """All that decides a trained model, beside the data."""
    if wildcards.run not in TRAINED:
        raise WorkflowError(
            f"{wildcards.run} is not among the runs of the configuration: {', '.join(TRAINED)}"
        )
    return flags(TRAINED[wildcards.run])


def recall_flags(wildcards):
    """All that decides a model of the decisive test."""
    name = f"{wildcards.cell}-{wildcards.seed}"
    if name not in RECALL_RUNS:
        raise WorkflowError(
            f"{name} is not among the runs of recall: {', '.join(RECALL_RUNS)}"
        )
    return flags(RECALL_RUNS[name])


def of_cell(pattern, cells):
    """A pattern with {cell} and {seed}, for every seed's run in the cell of the wildcards."""
    return lambda wildcards: expand(
        pattern, cell=wildcards.cell, seed=cells[wildcards.cell]
    )


def seeds_of(cells):
    """The seeds of the wildcards' cell in their order, which is that of its rows."""
    return lambda wildcards: cells[wildcards.cell]


def slots():
    """What a one-thread training takes of --cores: 1, or more where --cores exceeds the machine.

    Trainings that share a core evict each other's caches: on 2 cores, 4 at once are 12% slower
    than 2 and 2. The script itself always runs one thread, so the results are the same.
    """
    if workflow.resource_settings.nodes is not None:
        return 1  # a cluster: cores are the job's alone
    promised = workflow.resource_settings.cores or 1
    there = os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        there = len(os.sched_getaffinity(0))
    return max(1, min(promised, -(-promised // there)))


# work in a minute, in units of normscope.cost: two thirds, or less, of what one core was seen to do
A_MINUTE = {
    "train": 7e11,
    "ensemble": 7e11,
    "recall": 4e9,
    "probe": 2,
    "decompose": 800,
    "descend": 6000,
}


@functools.cache
def works():
    """The work of every job whose size the configuration decides, by rule and wildcards."""
    return {(job.rule, job.name): job.work for job in cost.jobs(CONFIG)}


def growing(amount):
    """A request that grows with each attempt; the amount may depend on the wildcards."""

    def request(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return request


def minutes(rule):
    """Time of a job of this rule, by its work; a scheduler that kills it gives more the next time."""

    def needed(wildcards):
        work = works().get((rule, "-".join(wildcards)), 0)
        return 10 + math.ceil(work / A_MINUTE[rule])

    return growing(needed)


def of_runs(pattern):
    """A pattern with {run}, for every run of the configuration."""
    return expand(pattern, run=RUNS)


def of_models(pattern):
    """A pattern with {model}, for every pretrained model of the configuration."""
    return expand(pattern, model=MODELS)


def of_baseline(pattern):
    """A pattern with {run}, for every seed's run of the baseline."""
    return expand(pattern, run=[run for run in RUNS if run.startswith(f"{BASELINE}-")])


def shape_json(wildcards):
    """All that decides the models of a shape, beside the data."""
    if wildcards.shape not in SHAPES:
        raise WorkflowError(
            f"{wildcards.shape} is not trained by depth.trained: {', '.join(SHAPES)}"
        )
    return SHAPES[wildcards.shape].model_dump_json()


def ensemble_mb(wildcards):
    """Memory of an ensemble: 1 GB, and 4 numbers a parameter with their activations."""
    recipe = SHAPES[wildcards.shape]
    parameters = 12 * recipe.model.n_layer * recipe.model.n_embd**2
    return 1000 + 32 * len(recipe.runs()) * parameters // 10**6


def place_json(wildcards):
    """All that decides a probe, beside the data and the trained models."""
    if wildcards.place not in PLACES:
        raise WorkflowError(
            f"{wildcards.place} is not in depth.start: {', '.join(PLACES)}"
        )
    return PLACES[wildcards.place].model_dump_json()


def of_place(pattern):
    """A pattern with {shape}, for every trained shape that a place probes."""

    def trained(wildcards):
        shapes = CONFIG.depth.trained_shapes()
        there = [shape for shape in shapes if shape.placement == wildcards.place]
        return expand(pattern, shape=there)

    return trained


def model_json(wildcards):
    """All that decides the measurement of a pretrained model, beside the prompts.

    How long a download may take does not.
    """
    if wildcards.model not in MODELS:
        raise WorkflowError(
            f"{wildcards.model} is not among pretrained.models: {', '.join(MODELS)}"
        )
    return MODELS[wildcards.model].decides.model_dump_json(
        exclude={"source": {"timeout_s"}}
    )


def model_timeout(wildcards):
    """Seconds that the download of a model may take; 0 where it has no limit."""
    timeout = getattr(MODELS[wildcards.model].source, "timeout_s", None)
    return 0 if timeout is None else max(1, round(timeout))


def model_files(source):
    """The files of a model on this machine; the script says if they are not what they should be."""
    folder = getattr(source, "path", None)
    if folder is None or not os.path.isdir(folder):
        return []
    return sorted(as_input(str(p)) for p in Path(folder).glob("*.*") if p.is_file())


def files_of_model(wildcards):
    """Those that were there at the start: Snakemake looks for links once."""
    return MODEL_FILES.get(wildcards.model, [])


def measure_mb(wildcards):
    """Memory of a measurement: the budget for weights, and 2 GB for torch, activations, logits."""
    return round(CONFIG.pretrained.memory_gb * 1000) + 2000
