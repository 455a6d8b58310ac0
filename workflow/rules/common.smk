# Functions for the rules; no rules in here.
import functools
import hashlib
import math
import os
import shlex
import shutil
import sys
import tarfile
import tempfile

import yaml


def located(rules):
    """The project's directory, by that of its rules; of a hosted repository a copy of the commit."""
    if not hasattr(rules, "hosted_repo"):
        path = os.path.normpath(rules.join("../..").get_path_or_uri(secret_free=True))
        return os.path.realpath(path)  # one name, as inputs are known by theirs
    repository = rules.hosted_repo.repo
    commit = repository.commit(rules.ref)
    copy = os.path.abspath(f".snakemake/normscope/{commit.hexsha}")
    if not os.path.isdir(copy):
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        part = tempfile.mkdtemp(prefix=f"{copy}.")
        with tempfile.TemporaryFile() as archive:
            repository.archive(archive, treeish=commit.hexsha)
            archive.seek(0)
            with tarfile.open(fileobj=archive) as files:
                files.extractall(part, filter="data")
        try:
            os.rename(part, copy)
        except OSError:  # another start was faster
            shutil.rmtree(part)
    return copy


if workflow.modifier.path_modifier.replace_prefix("results") != "results":
    raise WorkflowError(
        "module normscope: a prefix would leave its commands behind, which name results/;"
        " leave it out, or run it on its own: snakemake --directory FOLDER"
    )


def is_module():
    """Whether another workflow uses this one."""
    return not workflow.modifier.is_main_snakefile()


# whose code, rules and data these are; results go where the user works, which may be elsewhere
PROJECT = located(workflow.current_basedir)
IN_PLACE = os.path.realpath(PROJECT) == os.path.realpath(os.curdir)


def project(path):
    """A file of the project."""
    return held(path if IN_PLACE else os.path.join(PROJECT, path))


# of data/, what the user may have in the place of the project's
CHOSEN = ("claims.yaml", "prompts.yaml")


def data(name):
    """A file of data/: the user's where there is one to choose, else the project's."""
    path = f"data/{name}"
    if name not in CHOSEN or not os.path.lexists(path):
        return project(path)
    if not os.path.isfile(path):
        raise WorkflowError(
            f"{path} is no file, or a link to none: mend it, or remove it to take the project's"
        )
    return held(path)


def first(variable, folder):
    """A variable of folders with this one before the others."""
    folders = os.environ.get(variable, "").split(os.pathsep)
    return os.pathsep.join(filter(None, [folder, *folders]))


# jobs run on this Python and this tree's modules, whatever else is installed or activated; their
# commands find the project by a variable, as the names of a module are unknown to a command
SRC = os.path.join(PROJECT, "src")
for unfit, reader in {os.pathsep: "PYTHONPATH", "{": "Snakemake"}.items():
    if unfit in SRC:
        raise WorkflowError(
            f"{SRC}: {reader} reads {unfit} otherwise; move the project"
        )
sys.path.insert(0, SRC)
os.environ.update(
    NORMSCOPE=PROJECT,
    PATH=first("PATH", os.path.dirname(sys.executable)),
    PYTHONPATH=first("PYTHONPATH", SRC),
)

# a job's own numerics run in one thread, whatever --cores gives it: sums in another order differ in
# bits. torch's threads are set by the scripts. The commands of a workflow that uses this one as a
# module keep theirs
SINGLE = "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
if not is_module():
    shell.prefix(SINGLE)

from normscope.errors import Explained

try:
    from normscope.config import ConfigError, laid_over, load, typed
except Explained as e:  # of the registry of arms
    raise WorkflowError(str(e)) from None
from normscope.cost.machine import has_gpu, usable_cores
from normscope.cost.projection import jobs, once, reference_seconds
from normscope.cost.reference import read_reference
from normscope.io.files import write_text
from normscope.io.pins import pinned
from normscope.io import provenance
from normscope.io.provenance import closure, code_digest
from normscope.paper import figures, metrics
from normscope.studies.pretrained.prompts import check_prompts
from normscope.studies.statements import load_checked
from normscope.studies.traces import traces

# what was read of the code at earlier starts: to parse all of it takes more than a second
PARSED = Path(".snakemake/normscope/code")
provenance.restore(PARSED)


def validated(choices):
    """The configuration: the project's, the user's choices laid over it; or all that is wrong."""
    defaults = yaml.safe_load(Path(PROJECT, "config.yaml").read_text())
    try:
        return load(typed(laid_over(defaults, choices)))
    except ConfigError as e:
        raise WorkflowError(str(e)) from None


def device(asked):
    """The device of jobs: what is asked for; for auto a GPU where torch can use one."""
    return ("cuda" if has_gpu() else "cpu") if asked == "auto" else asked


def registered(registry, path, *beside):
    """The entries of a registry by name; one error names all that is wrong with them."""
    path = Path(path)
    known = {name: study.TABLES for name, study in STUDIES.items()}
    try:
        entries = registry.load(path)
        registry.check(path, entries, known, *beside)
    except Explained as e:
        raise WorkflowError(str(e)) from None
    return entries


def stated(path):
    """Check the statements of the ledger; one error names all that is wrong with them."""
    try:
        load_checked(Path(path), STUDIES, FIGURES)
    except Explained as e:
        raise WorkflowError(str(e)) from None


def prompted(path):
    """Check the prompts that pretrained models are measured on."""
    try:
        check_prompts(Path(path))
    except Explained as e:
        raise WorkflowError(str(e)) from None


def recorded(name, text):
    """A file in results/code with this text, as old as its last change."""
    path = Path("results/code", name)
    if not path.is_file() or path.read_text().rstrip("\n") != text:
        try:
            write_text(path, text)
        except (
            OSError
        ):  # a start that would run something says that results cannot be written
            pass
    return held(str(path))


@functools.cache
def code(script, study=None, stage=None):
    """A file that says what decides a script's results: its code, and the pinned packages.

    Of the code a digest: the script's and that of all modules that it imports, comments and
    docstrings left out. The file is written when that changes, and only then, so that its jobs run
    again, also where .snakemake was removed.

    A script may load a module of one study by name, ``stage`` or the script's name, or that
    module of all studies.
    """
    stage = stage or script
    loaded = {None: [], "all": STUDIES}.get(study, [study])
    files = [Path(SRC, "normscope", "studies", s, f"{stage}.py") for s in loaded]
    files = closure(
        Path(PROJECT, "scripts", f"{script}.py"), *filter(Path.is_file, files)
    )
    name = script if study in (None, "all") else f"{study}_{stage}"
    PINS[name] = pinned(files, Path(PROJECT, "constraints.txt"))
    return recorded(f"{name}.txt", f"{code_digest(files)}\n{PINS[name]}")


def as_input(path):
    """A file as Snakemake can name it: where it would read {x} as a wildcard, by a link."""
    if "{" not in path:
        return held(path)
    target = os.path.abspath(path)
    link = Path(".snakemake/links", hashlib.sha256(target.encode()).hexdigest())
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)
    return held(str(link))


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


def placed(job):
    """A job's parameters with the device that computes it, where its numbers depend on that."""
    has_device = "device" in type(job).model_fields
    return job.model_copy(update={"device": DEVICE}) if has_device else job


def recipe(jobs):
    """A job's parameters as JSON: all that decides it, beside the files that it reads.

    Of several jobs, by name, those of the wildcard {name}.
    """
    if isinstance(jobs, BaseModel):
        return verbatim(placed(jobs).model_dump_json())

    def named(wildcards):
        if wildcards.name not in jobs:
            raise WorkflowError(
                f"{wildcards.name} is not in the configuration: {', '.join(jobs)}"
            )
        return placed(jobs[wildcards.name]).model_dump_json()

    return named


@functools.cache
def traced(wildcards):
    """Where each statement is tested, and the lines that measure it: of the page alone."""
    places = traces(Path(data("claims.yaml")), Path(PROJECT))
    return recorded("traces.json", json.dumps(places, indent=1))


def table_file(study, name):
    """A table of a study."""
    return f"results/{study}/tables/{name}.csv"


def tables(study):
    """All tables of a study."""
    return [table_file(study, name) for name in STUDIES[study].TABLES]


def drawn(suffix):
    """A file of every figure."""
    return [f"results/paper/figures/{name}{suffix}" for name in FIGURES]


def probed(study):
    """What a probing job reads of the trained models."""
    part = STUDIES[study]

    def files(wildcards):
        jobs = part.probed(wildcards.name)
        return [
            f"results/{study}/models/{j}/{f}" for j in jobs for f in part.PROBE_READS
        ]

    return files


def tabulated(study):
    """What the tables of a study are made from."""
    return [f"results/{path}" for path in STUDIES[study].tabulated(CONFIG.settings)]


def study_files(study):
    """The files of data/ that the tables of a study are made from, by name."""
    return {name: data(name) for name in STUDIES[study].FILES}


def slots():
    """What a one-thread training takes of --cores: 1, or more where --cores exceeds the machine.

    Trainings that share a core evict each other's caches: on 2 cores, 4 at once are 12% slower
    than 2 and 2. The script itself always runs one thread, so the results are the same.
    """
    if workflow.resource_settings.nodes is not None:
        return 1  # a cluster: cores are the job's alone
    promised = workflow.resource_settings.cores or 1
    return max(1, min(promised, -(-promised // usable_cores())))


# a node of a cluster may be this much slower than the machine of the reference
SLOWEST = 4


@functools.cache
def reference():
    """What jobs cost on a machine that was measured."""
    return read_reference(Path(PROJECT, "workflow/costs.yaml"))


@functools.cache
def works():
    """Every job whose size the configuration decides, by rule and name."""
    return {(job.rule, job.name): job for job in jobs(CONFIG)}


def sized(rule, name):
    """A job of this rule, with its work."""
    return works().get((rule, name), once(rule))


def growing(amount):
    """A request that grows with each attempt; the amount may depend on the wildcards."""

    def request(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return request


def minutes(rule):
    """Time of a job of this rule, by its work; a scheduler that kills it gives more the next time."""

    def needed(wildcards):
        seconds = reference_seconds(sized(rule, wildcards.name), reference())
        return 10 + math.ceil(SLOWEST * seconds / 60)

    return growing(needed)


def train_mb(part):
    """Memory of a training job of a study."""
    stacks = part.trainings()
    return growing(lambda wildcards: part.train_mb(stacks[wildcards.name], DEVICE))


def timeout_s(wildcards):
    """Seconds that the download of a pretrained model may take; 0 where it has no limit."""
    source = CONFIG.pretrained.by_name()[wildcards.name].source
    timeout = getattr(source, "timeout_s", None)
    return 0 if timeout is None else max(1, round(timeout))


def measured_files(wildcards):
    """The files of a pretrained model on this machine, as they were at the start."""
    return MODEL_FILES.get(wildcards.name, [])


def model_files(source):
    """The files of a model on this machine; the script says if they are not what they should be."""
    folder = getattr(source, "path", None)
    if folder is None or not os.path.isdir(folder):
        return []
    return sorted(as_input(str(p)) for p in Path(folder).glob("*.*") if p.is_file())


def measure_mb(wildcards):
    """Memory of a measurement: the budget for weights, and 2 GB for torch, activations, logits."""
    return round(CONFIG.pretrained.memory_gb * 1000) + 2000
