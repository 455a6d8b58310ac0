# The expected time of a run: one line at its start, and one after each finished job. This file
# defines functions only; the Snakefile calls them.
import logging

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.cost.progress import RemainingTime, about


def shows_time():
    """Whether to print an estimate of the remaining time: jobs run here, and progress is shown."""
    return (
        workflow.is_main_process
        and workflow.local_exec
        and not workflow.touch
        and not {Quietness.ALL, Quietness.PROGRESS}
        & set(workflow.output_settings.quiet or ())
    )


def expected_s(job):
    """The expected CPU seconds of a job; 0 if the store has its results."""
    cache = job.rule.cache
    if job.is_norun:
        return 0.0
    try:
        if workflow.workflow_settings.cache is not None and cache and cache.output:
            if workflow.async_run(cache.exists(job)):
                return 0.0
    except WorkflowError:  # an unreadable store: the job reports it
        pass
    kind = "figures" if job.rule.name.startswith("figure_") else job.rule.name
    return reference().seconds(sized(kind, job.wildcards_dict.get("name", "")))


class ShowTimeLeft(logging.Handler):
    """Follows what Snakemake logs about its jobs, and prints what is left after each of them."""

    def __init__(self, remaining):
        super().__init__()
        self.remaining = remaining

    def emit(self, record):
        event = getattr(record, "event", None)
        try:
            if event == LogEvent.JOB_STARTED:
                self.remaining.start(record.jobs)
            elif event == LogEvent.JOB_FINISHED:
                self.remaining.finish(record.job_id)
            elif event == LogEvent.PROGRESS and self.remaining.fraction < 1:
                say(str(self.remaining))
        except Exception:
            self.handleError(record)  # a run does not stop because this line fails


def say(line):
    """Print a line like Snakemake's: it is logged too, and --quiet progress hides it."""
    logger.info(line, extra={"quietness": Quietness.PROGRESS})


def say_time():
    """Print the number of jobs and their expected time, and from then on what is left."""
    if not shows_time():
        return
    cores = max(1, workflow.cores // slots())
    work = {job.jobid: expected_s(job) for job in workflow.dag.needrun_jobs()}
    remaining, n = RemainingTime(work, cores), len(work)
    say(
        f"{n} job{'s' * (n > 1)}, {about(remaining.seconds)}"
        f" on {cores} core{'s' * (cores > 1)}. Ctrl-C stops; the same command goes on from there"
    )
    logger.addHandler(ShowTimeLeft(remaining))


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
