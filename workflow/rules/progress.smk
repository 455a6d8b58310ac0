# How long a run takes, and how much of it is left: a line at its start, and one after each job.
# Functions only; the Snakefile says when.
import logging

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.projection import Costs
from normscope.cost.schedule import Progress, Task, about, makespan


def is_said():
    """Whether this run's time is for us to say: jobs run here, and their progress is shown."""
    return (
        workflow.is_main_process
        and workflow.local_exec
        and not workflow.touch
        and not {Quietness.ALL, Quietness.PROGRESS}
        & set(workflow.output_settings.quiet or ())
    )


def as_sized(job):
    """A job of Snakemake's as the costs know it."""
    name = job.rule.name
    if name.startswith("figure_"):
        return once("figures", name.removeprefix("figure_"))
    return sized(name, job.wildcards_dict.get("name", ""))


def is_stored(job):
    """Whether the store has a job's results, so that it only links them."""
    cache = job.rule.cache
    if workflow.workflow_settings.cache is None or not cache or not cache.output:
        return False
    try:
        return workflow.async_run(cache.exists(job))
    except WorkflowError:  # a store that cannot be read: the job says so itself
        return False


def tasks():
    """The jobs that are to run, by Snakemake's numbers."""
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
    """Says after each finished job what is left, by what Snakemake logs of its jobs."""

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
            elif event == LogEvent.PROGRESS and self.progress.share < 1:
                say(str(self.progress))
        except Exception:
            self.handleError(record)  # as handlers do: a line is no reason to end a run


def say(line):
    """A line among Snakemake's own, in its log too, and quiet where these are."""
    logger.info(line, extra={"quietness": Quietness.PROGRESS})


def say_time():
    """At the start of a run: its jobs and how long they take; from then on what is left."""
    if not is_said():
        return
    cores = max(1, workflow.cores // slots())
    planned = tasks()
    n = len(planned)
    say(
        f"{n} job{'s' * (n > 1)}, {about(makespan(planned, cores))}"
        f" on {cores} core{'s' * (cores > 1)}. Ctrl-C stops; the same command goes on from there"
    )
    logger.addHandler(TimeLeft(Progress(planned, cores)))


def size_mb(folder):
    """What a folder holds on this disk; files that are linked to are their own folder's."""
    paths = Path(folder).rglob("*")
    return sum(path.lstat().st_size for path in paths if not path.is_symlink()) / 1e6


def say_results():
    """At the end of a run: where to look, and what it takes of the disk."""
    page = Path("results/paper/summary.html").absolute()
    if page.is_file():
        say(f"Summary: {page}, .md, .pdf; figures: {page.parent}/figures")
    folders = ["results"] if is_uri(STORE) else ["results", STORE]
    sizes = [f"{Path(path).name} {size_mb(path):.0f} MB" for path in folders]
    say(f"On disk: {', '.join(sizes)}")
