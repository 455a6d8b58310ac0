# Where results lie in a storage (--default-storage-provider) and jobs run in directories of their own:
# what commands call results/ is Snakemake's local copy of the storage. Functions only; the Snakefile
# says when.
from snakemake.io import sourcecache_entry

STORED = workflow.storage_settings.default_storage_provider is not None
# a folder that all jobs see, for what they leave beside their outputs
SHARED = os.environ.get("NORMSCOPE_SHARED")


def held(path):
    """A file that each machine has, or writes at its start: no storage is asked for it."""
    return sourcecache_entry(path, path) if STORED else path


def is_uri(store):
    """Whether Snakemake keeps the store in the storage, as s3://bucket/store."""
    return "://" in store


def link(path, target):
    """Make a path lead to a folder, which is made too."""
    target = os.path.abspath(target)
    os.makedirs(target, exist_ok=True)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        os.symlink(target, path)
    except FileExistsError:
        if os.path.realpath(path) != os.path.realpath(target):
            raise WorkflowError(
                f"{path} is of a run without a storage, or of another one:"
                " snakemake --directory FOLDER runs in another folder"
            ) from None


def lay_out(store, studies):
    """Lead commands to the local copies, and to what all jobs see; a storage transfers neither."""
    if not STORED:
        return
    provider = workflow.storage_registry.default_storage_provider
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    link("results", provider.object(f"{prefix}/results").local_path())
    if SHARED:
        for folder in ["weights", *(f"{study}/checkpoints" for study in studies)]:
            link(f"results/{folder}", f"{SHARED}/{folder}")
    if is_uri(store):
        kept = os.path.abspath(f"{SHARED}/store" if SHARED else "store")
        os.makedirs(kept, exist_ok=True)
        shell.prefix(f"{SINGLE}export SNAKEMAKE_OUTPUT_CACHE={shlex.quote(kept)}; ")
