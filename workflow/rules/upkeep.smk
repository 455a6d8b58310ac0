# What a start finds and an end leaves: damage, leftovers of kills, times of another clock, failures.
# Functions only; the Snakefile says when.
import shutil
import time

from normscope.io import experiments
from normscope.io.pins import not_as_pinned
from normscope.io.seals import is_altered
from normscope.io.store import KEY, keys, lend, remove_damaged

KEPT_IN = "*/[mp]*/*/"  # models and probes


def make_store(store):
    """The folder of finished models, before anything is trained."""
    if is_uri(store):
        return
    try:
        os.makedirs(store, exist_ok=True)
    except OSError as e:
        raise WorkflowError(
            f"the store cannot be made: {e}; SNAKEMAKE_OUTPUT_CACHE=FOLDER puts it elsewhere,"
            " and snakemake --directory FOLDER all that is made"
        ) from None


def mend(store):
    """Drop what is damaged, so that its job runs again."""
    if workflow.is_main_process:
        share(store)
        check_store(store)
    if is_ours() and os.access("results", os.W_OK):
        warn_of_lost_records("results")
        drop_damaged_tables("results")
        mend_times("results", "store")


def is_ours():
    """Whether this process is to run jobs, and no other Snakemake runs jobs in this directory."""
    locks = Path(".snakemake/locks")
    return workflow.is_main_process and not (locks.is_dir() and any(locks.iterdir()))


def share(store):
    """Between the store that DVC records, store/ of this folder, and another one that is filled.

    That one gets all that DVC has put into store/, which in turn gets what the results rest on.
    """
    if "DVC_STAGE" not in os.environ or IS_OWN_STORE or is_uri(store):
        return
    own = Path("store")
    own.mkdir(exist_ok=True)
    lend(own, Path(store), keys(own))
    links = (
        p.readlink() for p in Path("results").glob(f"{KEPT_IN}*") if p.is_symlink()
    )
    lend(Path(store), own, {link.name[:KEY] for link in links})


def check_start():
    """What would fail after hours, or give results a false name."""
    check_writable("results")
    check_pins()


def check_pins():
    """Results are named by the pins: made with other packages, they would have a false name."""
    if workflow.deployment_settings.deployment_method:
        return  # jobs have environments of their own
    wanted = " ".join(PINS.values()).split()
    if wrong := not_as_pinned(wanted):
        raise WorkflowError(
            f"installed are {', '.join(wrong)}: run `make tools`, or change the pins in"
            " constraints.txt to what is installed (what rests on them is made again)"
        )


def check_writable(folder):
    """Or Snakemake would say so with a traceback."""
    if os.path.exists(folder) and not os.access(folder, os.W_OK):
        raise WorkflowError(
            f"{folder} cannot be written (a read-only disk, or its permissions):"
            " nothing has run; mend that and start again"
        )


def check_store(store):
    """Remove what is damaged in the store, and links in results to what it no longer has whole.

    Without its links a result is missing, so that its job runs again.
    """
    if is_uri(store):
        return
    try:
        damaged = remove_damaged(Path(store), Path(".snakemake/normscope/store.json"))
        for line in damaged:
            print(line, file=sys.stderr)
        for folder in Path("results").glob(KEPT_IN):
            links = [path for path in folder.iterdir() if path.is_symlink()]
            if not all(path.exists() for path in links):  # half a result is none
                for path in links:
                    path.unlink()
    except OSError as e:
        raise WorkflowError(f"the store cannot be checked: {e}") from None


def warn_of_lost_records(folder):
    """Where Snakemake does not know with which values results were made, it takes them as they are."""
    if any(Path(folder).glob(KEPT_IN)) and not os.path.isdir(".snakemake/metadata"):
        print(
            f"{folder}/ is here without the records of its run (.snakemake): a value that was"
            f" changed since is not noticed; rm -r {folder} makes it again, with models of the store",
            file=sys.stderr,
        )


def drop_damaged_tables(folder):
    """A table that is not what its script wrote is no result: it is to be made again."""
    for path in Path(folder).rglob("*.csv"):
        # a link leads to the store, which has sums of its own
        if not path.is_symlink() and is_altered(path):
            print(f"{path} is damaged: it is made again", file=sys.stderr)
            path.unlink()


def mend_times(*folders):
    """Times from the future, of a clock that was set back since: they are now.

    Snakemake refuses whatever is made of such files; contents decide what runs again.
    """
    now = time.time()
    for path in (path for folder in folders for path in Path(folder).rglob("*")):
        if path.lstat().st_mtime > now:
            os.utime(path, (now, now), follow_symlinks=False)


def drop_leftovers():
    """What a kill left in the store, and checkpoints of runs that are safe in the store."""
    if (
        IS_OWN_STORE and not experiments.are_at_work()
    ):  # in a shared one others may be at work
        for path in Path(STORE).glob("tmp*/"):
            shutil.rmtree(path)
    for folder in Path("results").glob("*/checkpoints/*"):
        outputs = list(folder.parents[1].joinpath("models", folder.name).glob("[!.]*"))
        if outputs and all(path.is_symlink() and path.exists() for path in outputs):
            for path in folder.rglob("*step-*"):
                path.unlink()


def forget_failures():
    """A model that could not be measured is no result: its reason leaves the store, for a new try."""
    for path in Path("results").glob("*/probes/*/model.json"):
        if path.is_file() and '"missing": null' not in path.read_text():
            missing = json.loads(path.read_text())["missing"]
            print(f"Not measured: {path.parent.name}: {missing}")
            for link in path.parent.iterdir():
                link.resolve().unlink()
                link.unlink(missing_ok=True)
