# The expected time of a run: one line at its start, and one after each finished job. This file
# defines functions only; the Snakefile calls them.
import logging

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.progress import Progress, Task, about
from normscope.cost.projection import Costs


def is_said():
    """Whether to print an estimate of the remaining time: jobs run here, and progress is shown."""
    return (
        workflow.is_main_process
        and workflow.local_exec
        and not workflow.touch
        and not {Quietness.ALL, Quietness.PROGRESS}
        & set(workflow.output_settings.quiet or ())
    )


def as_sized(job):
    """The Job of the cost model that corresponds to a Snakemake job."""
    name = job.rule.name
    if name.startswith("figure_"):
        return once("figures", name.removeprefix("figure_"))
    return sized(name, job.wildcards_dict.get("name", ""))


def is_stored(job):
    """Whether the store has the results of a job, so that the job only links them."""
    cache = job.rule.cache
    if workflow.workflow_settings.cache is None or not cache or not cache.output:
        return False
    try:
        return workflow.async_run(cache.exists(job))
    except WorkflowError:  # an unreadable store: the job reports it
        return False


def tasks():
    """The jobs that are to run, by Snakemake's number for them."""
    jobs = list(workflow.dag.needrun_jobs())
    manifest = Path("results/paper/manifest.json")
    known = measured(Path("results/benchmarks"), manifest, CONFIG)
    speed = probe()
    costs = Costs(reference(), known, speed.round_s / reference().round_s)
    seconds = costs.seconds(
        as_sized(job) for job in jobs if not (job.is_norun or is_stored(job))
    )
    planned = {}
    for job in jobs:
        cores = max(1, job.threads // slots())
        duration = seconds.get(as_sized(job), 0.0) * speed.crowding / cores
        needs = frozenset(need.jobid for need in workflow.dag.job_dependencies(job))
        planned[job.jobid] = Task(duration, cores, needs)
    return planned


class TimeLeft(logging.Handler):
    """Follows what Snakemake logs about its jobs, and prints what is left after each of them."""

    def __init__(self, progress):
        super().__init__()
        self.progress = progress

    def emit(self, record):
        event = getattr(record, "event", None)
        try:
            if event == LogEvent.JOB_STARTED:
                self.progress.start(record.jobs)
            elif event == LogEvent.JOB_ERROR:
                self.progress.fail(record.jobid)
            elif event == LogEvent.JOB_FINISHED:
                self.progress.finish(record.job_id)
            elif event == LogEvent.PROGRESS and self.progress.fraction < 1:
                say(str(self.progress))
        except Exception:
            self.handleError(record)  # a run does not stop because this line fails


def say(line):
    """Print a line like Snakemake's: it is logged too, and --quiet progress hides it."""
    logger.info(line, extra={"quietness": Quietness.PROGRESS})


def say_time():
    """Print the number of jobs and their expected time, and from then on what is left."""
    if not is_said():
        return
    cores = max(1, workflow.cores // slots())
    planned = tasks()
    progress, n = Progress(planned, cores), len(planned)
    say(
        f"{n} job{'s' * (n > 1)}, {about(progress.seconds_left)}"
        f" on {cores} core{'s' * (cores > 1)}. Ctrl-C stops; the same command goes on from there"
    )
    logger.addHandler(TimeLeft(progress))


def size_mb(folder):
    """Size of the files in a folder. Symbolic links count nothing."""
    paths = Path(folder).rglob("*")
    return sum(path.lstat().st_size for path in paths if not path.is_symlink()) / 1e6


def say_results():
    """Print where the page is, and how much disk space the results take."""
    page = Path("results/paper/summary.html").absolute()
    if page.is_file():
        say(f"Summary: {page}, .md, .pdf; figures: {page.parent}/figures")
    folders = ["results"] if is_uri(STORE) else ["results", STORE]
    sizes = [f"{Path(path).name} {size_mb(path):.0f} MB" for path in folders]
    say(f"On disk: {', '.join(sizes)}")
