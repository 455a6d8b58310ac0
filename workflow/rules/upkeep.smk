# Checks and repairs at the start and end of a run: damaged files, leftovers of killed runs,
# modification times in the future, recorded failures. This file defines functions only; the
# Snakefile calls them.
import shutil
import time

from normscope.io import experiments
from normscope.io.files import is_altered
from normscope.io.pins import not_as_pinned
from normscope.io.store import KEY, keys, lend, remove_damaged

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
    """Remove damaged results, so that their jobs run again."""
    if workflow.is_main_process:
        synchronize_stores(store)
        check_store(store)
    if is_ours() and os.access("results", os.W_OK):
        warn_of_lost_records("results")
        drop_damaged_tables("results")
        clamp_times("results", "store")


def is_ours():
    """Whether this process, and none but this, runs jobs in this directory."""
    locks = Path(".snakemake/locks")
    return workflow.is_main_process and not (locks.is_dir() and any(locks.iterdir()))


def synchronize_stores(store):
    """Synchronize store/, which DVC records, with the store in use, if the two differ.

    The store in use gets all entries that DVC has put into store/; store/ in turn gets the entries
    on which the results depend.
    """
    if "DVC_STAGE" not in os.environ or IS_OWN_STORE or is_uri(store):
        return
    recorded = Path("store")
    recorded.mkdir(exist_ok=True)
    lend(recorded, Path(store), keys(recorded))
    links = (
        p.readlink() for p in Path("results").glob(f"{KEPT_IN}*") if p.is_symlink()
    )
    lend(Path(store), recorded, {link.name[:KEY] for link in links})


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
    if CONFIG.device == "cuda" and is_here() and not torch_finds_gpu():
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


def check_store(store):
    """Remove damaged entries of the store, and the links in results/ to incomplete entries.

    A result without its links counts as missing, so that its job runs again.
    """
    if is_uri(store):
        return
    try:
        damaged = remove_damaged(Path(store), Path(".snakemake/normscope/store.json"))
        for line in damaged:
            print(line, file=sys.stderr)
        for folder in Path("results").glob(KEPT_IN):
            links = [path for path in folder.iterdir() if path.is_symlink()]
            # an incomplete result counts as missing
            if not all(path.exists() for path in links):
                for path in links:
                    path.unlink()
    except OSError as e:
        raise WorkflowError(f"the store cannot be checked: {e}") from None


def warn_of_lost_records(folder):
    """Warn if .snakemake is missing: Snakemake then does not notice changed parameters."""
    if any(Path(folder).glob(KEPT_IN)) and not os.path.isdir(".snakemake/metadata"):
        print(
            f"{folder}/ is here without the records of its run (.snakemake), so changed parameters are"
            f" not noticed; rm -r {folder} rebuilds it with the models in the store",
            file=sys.stderr,
        )


def drop_damaged_tables(folder):
    """Remove tables that differ from what their scripts wrote, so that they are made again."""
    for path in Path(folder).rglob("*.csv"):
        # links point into the store, which has its checksums
        if not path.is_symlink() and is_altered(path):
            print(f"{path} is damaged: it is made again", file=sys.stderr)
            path.unlink()


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
