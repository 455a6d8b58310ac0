"""Remove entries of the store that no configuration of the repository asks for."""

import os
import sys
from pathlib import Path

from pydantic import Field
from snakemake.api import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    ResourceSettings,
    SnakemakeApi,
    WorkflowSettings,
)
from snakemake.caching import LOCATION_ENVVAR
from snakemake.exceptions import WorkflowError
from snakemake.settings.types import Quietness

# the code of this project decides what it asks for, even if another copy of normscope is installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from normscope.command import parse
from normscope.errors import run_script
from normscope.io import experiments, store
from normscope.schema import Strict


class Flags(Strict):
    """Prune the store."""

    configs: Path = Field(default=Path("config"), description="variants over config.yaml")
    dry_run: bool = Field(default=False, description="list what would be removed")


def asked(variant: Path | None) -> set[str]:
    """Keys of the entries that a configuration asks for, from Snakemake's hash of each job.

    Args:
        variant: a file that is laid over config.yaml.
    """
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        project = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[variant] if variant else []),
            workflow_settings=WorkflowSettings(cache=[]),
            snakefile=Path("Snakefile"),
        )
        # the API does not give the hashes of jobs: these are the steps of its dry run
        workflow = project._workflow
        workflow.dag_settings = DAGSettings(targets={"models"})
        workflow._prepare_dag(forceall=False, ignore_incomplete=True, lock_warn_only=True)
        workflow._build_dag()
        assert workflow.dag is not None
        assert workflow.output_file_cache is not None
        hashes = workflow.output_file_cache.provenance_hash_map
        cached = [job for job in workflow.dag.jobs if job.rule.cache and job.rule.cache.output]
        return {workflow.async_run(hashes.get_provenance_hash(job)) for job in cached}


def main() -> None:
    flags = parse(Flags)
    if not Path("Snakefile").is_file():
        sys.exit(f"error: {Path.cwd()} is not the project: `make prune` there")
    shared = os.environ.get(LOCATION_ENVVAR, "store")
    if Path(shared).absolute() != Path("store").absolute():
        sys.exit(
            f"error: {LOCATION_ENVVAR} is {shared}, which other projects may share:"
            " nothing is removed; unset it to prune store/"
        )
    if experiments.are_at_work():
        sys.exit("error: experiments of DVC fill this store: prune it after they have ended")
    wanted: set[str] = set()
    for variant in (None, *sorted(flags.configs.glob("*.yaml"))):
        try:
            keys = asked(variant)
        except WorkflowError as e:
            sys.exit(f"error: {variant or 'config.yaml'}: {e}; nothing is removed")
        print(f"{variant or 'config.yaml'} asks for {len(keys):,} results")
        wanted |= keys
    folder = Path(os.environ[LOCATION_ENVVAR])  # set by the Snakefile
    unasked = store.keys(folder) - wanted
    freed = store.remove(folder, unasked, dry_run=flags.dry_run)
    kept, verb = len(store.keys(folder) & wanted), "would go" if flags.dry_run else "removed"
    print(f"{folder}: {kept:,} entries kept, {len(unasked):,} {verb} ({freed / 1e6:,.1f} MB)")


if __name__ == "__main__":
    run_script(main)
