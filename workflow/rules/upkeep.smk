# The start and the end of a run: where results are kept, what must be right before the first job, damaged files,
# leftovers of killed runs, recorded failures, and what the terminal shows. This file defines functions only; the
# Snakefile calls them.
import json
import locale
import logging
import shlex
import shutil
import time

from normscope.io.files import find_altered, read_json
from normscope.io.pins import find_other_versions
from normscope.io.store import KEY, default_store, keys, link_into, relink, reset_modes
from normscope.io.store import find_damaged as damaged_entries
from normscope.machine import usable_cores
from normscope.nn.arms import LABELS
from normscope.progress import LOGGER, Countdown, about, ending

KEPT_IN = "*/[mp]*/*/"  # models and probes
# a folder that all jobs can access, for files other than their outputs
SHARED = os.environ.get("NORMSCOPE_SHARED")


def is_uri(store):
    """Whether the store is in the storage, such as s3://bucket/store."""
    return "://" in store


def link_folder(path, target):
    """Create a folder, and a symbolic link to it."""
    target = os.path.abspath(target)
    os.makedirs(target, exist_ok=True)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        os.symlink(target, path)
    except FileExistsError:
        if os.path.realpath(path) != os.path.realpath(target):
            raise WorkflowError(
                f"{path} belongs to a run without a storage, or with another one;"
                " use another folder: snakemake --directory FOLDER"
            ) from None


def check_place(store):
    """Check that this locale writes files as UTF-8, and that folders of results are no files."""
    encoding = locale.getpreferredencoding(False)
    if encoding.upper() != "UTF-8":
        raise WorkflowError(
            f"this locale writes files in {encoding}, and normscope in UTF-8: set PYTHONUTF8=1"
        )
    for path in ("results", store):
        if os.path.lexists(path) and not os.path.isdir(path):
            raise WorkflowError(
                f"{path} is a file or a dangling link, and a folder is needed: move it away"
            )


def lay_out(store, studies):
    """Create the store; with a storage, link results/ to its local copies, and shared folders to NORMSCOPE_SHARED."""
    if not is_uri(store):
        os.makedirs(store, exist_ok=True)
    if not IS_STORED:
        return
    provider = workflow.storage_registry.default_storage_provider
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    link_folder("results", provider.object(f"{prefix}/results").local_path())
    if SHARED:
        trained = [f"{study}/checkpoints" for study in studies]
        for folder in ["weights", *trained]:
            link_folder(f"results/{folder}", f"{SHARED}/{folder}")
    if is_uri(store):
        kept = os.path.abspath(f"{SHARED}/store" if SHARED else "store")
        os.makedirs(kept, exist_ok=True)
        shell.prefix(f"{SINGLE}export SNAKEMAKE_OUTPUT_CACHE={shlex.quote(kept)}; ")


def repair(store):
    """Remove damaged results, so that their jobs run again. A dry run only reports them, so its plan lacks the jobs."""
    if not workflow.is_main_process:
        return  # a job
    is_run = not workflow.output_settings.dryrun
    if is_run:
        synchronize_stores(store)
        adopt(store)
    for path, parts in find_damaged(store):
        when = "it is made again" if is_run else "the next run makes it again"
        print(f"{path} is damaged: {when}", file=sys.stderr)
        for part in parts if is_run else ():
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def find_damaged(store):
    """Damaged results, and the files or folders to remove for each."""
    if not is_uri(store):
        seen = Path(".snakemake/normscope/store.json")
        for key, name in damaged_entries(Path(store), seen).items():
            yield Path(store, key + name), [*Path(store).glob(f"{key}*")]
    if any(Path(".snakemake").glob("locks/*")):
        return  # another run in this directory may be writing
    warn_of_lost_records("results")
    for path in find_altered(Path("results")):
        if not path.is_symlink():  # into the store, which has its checksums
            yield path, [path]


def synchronize_stores(store):
    """Synchronize store/, which DVC records, with the store in use, if the two differ.

    The store in use gets all entries that DVC has put into store/; store/ in turn gets the entries
    on which the results depend.
    """
    recorded = Path("store")
    is_own = os.path.abspath(store) == os.path.abspath(recorded)
    if "DVC_STAGE" not in os.environ or is_own or is_uri(store):
        return
    recorded.mkdir(exist_ok=True)
    link_into(recorded, Path(store), keys(recorded))
    links = (
        p.readlink() for p in Path("results").glob(f"{KEPT_IN}*") if p.is_symlink()
    )
    link_into(Path(store), recorded, {link.name[:KEY] for link in links})


def check_start():
    """Check for what would fail after hours, or mislabel results: results are named by the pinned packages."""
    has_environments = workflow.deployment_settings.deployment_method  # of jobs
    wanted = " ".join(PINS.values()).split()
    if not has_environments and (wrong := find_other_versions(wanted)):
        raise WorkflowError(
            f"installed are {', '.join(wrong)}: run `make tools`, or change the pins in"
            " constraints.txt to what is installed (results that depend on them are made again)"
        )
    # jobs on a cluster run on other machines
    if CONFIG.device == "cuda" and not IS_CLUSTER and not torch_finds_gpu():
        raise WorkflowError(
            "device: cuda, but torch finds no GPU: nothing has run; set device: auto or cpu, or"
            " install a torch that fits the GPU's driver"
        )


def adopt(store):
    """Undo what Snakemake's cache does to results: absolute links, and files that everyone may write.

    With relative links, a project may be moved or copied.
    """
    if not is_uri(store) and not IS_STORED:
        relink(Path("results").glob(f"{KEPT_IN}*"), Path(store))
        reset_modes(Path(store))


def warn_of_lost_records(folder):
    """Warn if .snakemake is missing: Snakemake then does not notice changed parameters."""
    if any(Path(folder).glob(KEPT_IN)) and not os.path.isdir(".snakemake/metadata"):
        print(
            f"{folder}/ is here without the records of its run (.snakemake), so changed parameters are"
            f" not noticed; rm -r {folder} rebuilds it with the models in the store",
            file=sys.stderr,
        )


def drop_leftovers():
    """Remove what killed jobs left in the store a day ago, and checkpoints of finished trainings."""
    for path in Path(STORE).glob("tmp*/"):
        if path.stat().st_mtime < time.time() - 86_400:  # other runs may be active
            shutil.rmtree(path)
    for folder in Path("results").glob("*/checkpoints/*"):
        outputs = list(folder.parents[1].joinpath("models", folder.name).glob("[!.]*"))
        if outputs and all(path.is_symlink() and path.exists() for path in outputs):
            for path in folder.rglob("*step-*"):
                path.unlink()


def forget_failures():
    """Remove recorded failures of measurements, so that they are retried."""
    for path in Path("results").glob("*/probes/*/model.json"):
        if path.is_file() and '"missing": null' not in path.read_text():
            missing = json.loads(path.read_text())["missing"]
            print(f"Not measured: {path.parent.name}: {missing}")
            for link in path.parent.iterdir():
                link.resolve().unlink()
                link.unlink(missing_ok=True)


def show_from(level):
    """Let the terminal show messages from a level on; the log file of the run has all of them."""
    for handler in LOGGER.handlers:
        is_file = isinstance(handler, logging.FileHandler)
        if isinstance(handler, logging.StreamHandler) and not is_file:
            handler.setLevel(level)


def say_start():
    """From here on, show the remaining time, warnings and errors in place of every job."""
    if IS_CLUSTER:
        return
    show_from(logging.WARNING)
    COUNTDOWN.prints = True
    trained = [s for n, s in JOBS.items() if COUNTDOWN.planned[f"{n}_train"]]
    norms = {LABELS[c.arm]: 0 for s in trained for c in s.cells().values()}
    cores = 0 if GPUS else min(workflow.cores, usable_cores())
    if norms:
        print(COUNTDOWN.plan([*norms], cores), file=sys.stderr)
    print("Ctrl-C stops; the same command goes on from there", file=sys.stderr)


def outcomes(file):
    """What the main comparison of each claim came out as in a run, by key; None if undecided."""
    results = {v["key"]: v.get("results", {}) for v in read_json(file)["verdicts"]}
    return {key: one.get("", {}).get("outcome") for key, one in results.items()}


def say_results():
    """Print what was found, where the pages are, and the next command."""
    show_from(logging.INFO)
    folder, made = Path("results/paper").absolute(), COUNTDOWN.planned
    answers = [Path(path) for path in (cards() if made["card_page"] else ())]
    words = {
        "jobs": made.total(),
        "time": about(time.time() - COUNTDOWN.began),
        "page": folder / "summary.html",
        "cards": {p.absolute(): read_json(p) for p in answers if p.suffix == ".json"},
        "frame": None,
    }
    if made["render"] and words["page"].is_file():
        words["frame"] = read_json(folder / "frame.json")
        kept = outcomes(Path(EVIDENCE[0])) if EVIDENCE else {}
        here = {k: o for k, o in outcomes(folder / "claims.json").items() if o}
        words["against"] = sum(kept.get(k) not in (None, o) for k, o in here.items())
    LOGGER.info(ending(Path(PROJECT, "workflow/report/terminal.txt"), words))
