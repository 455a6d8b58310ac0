# Runs with a default storage (--default-storage-provider), in which each job has a separate
# directory: results/ in commands is then Snakemake's local copy of the storage. This file defines
# functions only; the Snakefile calls them.
from snakemake.io import sourcecache_entry

STORED = workflow.storage_settings.default_storage_provider is not None
# a folder that all jobs can access, for files other than their outputs
SHARED = os.environ.get("NORMSCOPE_SHARED")


def local(path):
    """A file that each machine has, or writes at its start, so it is not taken from the storage."""
    return sourcecache_entry(path, path) if STORED else path


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


def lay_out(store, studies):
    """Link results/ to the local copies, and shared folders to NORMSCOPE_SHARED."""
    if not STORED:
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
