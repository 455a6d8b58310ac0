# Checks and repairs at the start and end of a run: damaged files, leftovers of killed runs,
# modification times in the future, recorded failures. This file defines functions only; the
# Snakefile calls them.
import shutil
import time

from normscope.io import experiments
from normscope.io.files import altered
from normscope.io.pins import not_as_pinned
from normscope.io.store import KEY, find_damaged, keys, link_into
from normscope.io.store import relink, reset_modes

KEPT_IN = "*/[mp]*/*/"  # models and probes


def make_store(store):
    """Create the store before anything is trained."""
    if is_uri(store):
        return
    try:
        os.makedirs(store, exist_ok=True)
    except OSError as e:
        raise WorkflowError(
            f"the store cannot be made: {e}; set SNAKEMAKE_OUTPUT_CACHE=FOLDER to put it elsewhere,"
            " or use snakemake --directory FOLDER to put all results elsewhere"
        ) from None


def check_folders(*names):
    """Report a file in the place of a folder of results before Snakemake does with a traceback."""
    for path in ("results", *(f"results/{name}" for name in names)):
        if os.path.lexists(path) and not os.path.isdir(path):
            raise WorkflowError(
                f"{path} is a file or a dangling link, and a folder is needed: move it away"
            )


def repair(store):
    """Remove damaged results, so that their jobs run again. A dry run only reports them."""
    if not workflow.is_main_process:
        return  # a job
    if not IS_DRY_RUN:
        synchronize_stores(store)
    check_store(store, not IS_DRY_RUN)
    is_locked = any(
        Path(".snakemake").glob("locks/*")
    )  # by another run in this directory
    if os.access("results", os.W_OK) and not is_locked:
        warn_of_lost_records("results")
        check_results("results", not IS_DRY_RUN)
        if not IS_DRY_RUN:
            clamp_times("results", "store")


def synchronize_stores(store):
    """Synchronize store/, which DVC records, with the store in use, if the two differ.

    The store in use gets all entries that DVC has put into store/; store/ in turn gets the entries
    on which the results depend.
    """
    if "DVC_STAGE" not in os.environ or IS_OWN_STORE or is_uri(store):
        return
    recorded = Path("store")
    recorded.mkdir(exist_ok=True)
    link_into(recorded, Path(store), keys(recorded))
    links = (
        p.readlink() for p in Path("results").glob(f"{KEPT_IN}*") if p.is_symlink()
    )
    link_into(Path(store), recorded, {link.name[:KEY] for link in links})


def check_start():
    """Check for what would fail after hours, or mislabel results."""
    check_writable("results")
    check_pins()
    check_device()


def check_pins():
    """Check the installed packages: results are named by the pins, and others mislabel them."""
    if workflow.deployment_settings.deployment_method:
        return  # jobs have separate environments
    wanted = " ".join(PINS.values()).split()
    if wrong := not_as_pinned(wanted):
        raise WorkflowError(
            f"installed are {', '.join(wrong)}: run `make tools`, or change the pins in"
            " constraints.txt to what is installed (results that depend on them are made again)"
        )


def check_device():
    """Check that torch finds the GPU that the configuration asks for; clusters have other machines."""
    if CONFIG.device == "cuda" and not IS_CLUSTER and not torch_finds_gpu():
        raise WorkflowError(
            "device: cuda, but torch finds no GPU: nothing has run; set device: auto or cpu, or"
            " install a torch that fits the GPU's driver"
        )


def check_writable(folder):
    """Report an unwritable folder before Snakemake does with a traceback."""
    if os.path.exists(folder) and not os.access(folder, os.W_OK):
        raise WorkflowError(
            f"{folder} cannot be written (a read-only disk, or its permissions):"
            " nothing has run; fix this and start again"
        )


def check_store(store, is_run):
    """Report damaged entries of the store; a run removes them."""
    if is_uri(store):
        return
    try:
        if is_run:
            adopt(store)
        damaged = find_damaged(Path(store), Path(".snakemake/normscope/store.json"))
        for key, name in damaged.items():
            report_damage(Path(store, key + name), is_run)
            for path in Path(store).glob(f"{key}*") if is_run else ():
                path.unlink()
    except OSError as e:
        raise WorkflowError(f"the store cannot be checked: {e}") from None


def report_damage(path, is_run):
    """Print that a file is damaged and made again; a dry run removes nothing, so its plan lacks the job."""
    when = "it is made again" if is_run else "the next run makes it again"
    print(f"{path} is damaged: {when}", file=sys.stderr)


def adopt(store):
    """Undo what Snakemake's cache does to results: absolute links, and files that everyone may write.

    With relative links, a project may be moved or copied.
    """
    if not is_uri(store) and not STORED:
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


def check_results(folder, is_run):
    """Report results that differ from what their scripts wrote; a run removes them."""
    for path in altered(Path(folder)):
        if path.is_symlink():
            continue  # into the store, which has its checksums
        report_damage(path, is_run)
        if is_run:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def clamp_times(*folders):
    """Clamp modification times that lie in the future, after the clock was set back.

    Snakemake rejects everything made from such files. Reruns depend on contents, not times.
    """
    now = time.time()
    for path in (path for folder in folders for path in Path(folder).rglob("*")):
        if path.lstat().st_mtime > now:
            os.utime(path, (now, now), follow_symlinks=False)


def drop_leftovers():
    """Remove leftovers of killed jobs from the store, and checkpoints of finished trainings."""
    if (
        IS_OWN_STORE and not experiments.are_at_work()
    ):  # in a shared store, other runs may be active
        for path in Path(STORE).glob("tmp*/"):
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
