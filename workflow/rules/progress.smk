# What a run on one machine prints: its expected time at the start and as the work proceeds, errors
# and warnings, and at the end the location of the page. This file defines functions only; the
# Snakefile calls them.
import logging
import time

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.cost.projection import about, seconds_left

# What Snakemake logs about the run and about each job: thousands of lines. They are in its log file.
DETAILS = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.RUN_INFO),
    *(LogEvent.JOB_INFO, LogEvent.SHELLCMD, LogEvent.JOB_STARTED),
    *(LogEvent.JOB_FINISHED, LogEvent.PROGRESS),
}
DETAILS_BY_TEXT = (
    "Select jobs to execute",
    "Moving output file",
    "Symlinking output file",
)
STEP = 0.05  # share of the work after which the remaining time is printed again


def is_here():
    """Whether this process runs jobs on this machine."""
    return workflow.is_main_process and workflow.local_exec and not workflow.touch


def is_for_terminal(record):
    """Whether a message is an error, a warning, or something other than a detail."""
    is_detail = (
        getattr(record, "event", None) in DETAILS
        or getattr(record, "quietness", None) == Quietness.RULES
        or str(record.msg).startswith(DETAILS_BY_TEXT)
    )
    return record.levelno > logging.INFO or not (is_detail and is_here())


def keep_terminal_short():
    """Leave details to the log file, unless the user asks for shell commands or debugging output."""
    asked = workflow.output_settings
    if asked.dryrun or asked.printshellcmds or asked.verbose:
        return
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(is_for_terminal)


def say(line):
    """Print a line like Snakemake's: it is logged too, and --quiet progress hides it."""
    logger.info(line, extra={"quietness": Quietness.PROGRESS})


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
    """Prints the remaining work and time after the first job, and after each STEP of the work."""

    def __init__(self, work, cores):
        super().__init__()
        self.left, self.total = dict(work), sum(work.values())
        self.cores, self.started = cores, time.monotonic()
        self.next = 0.0

    def emit(self, record):
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_FINISHED:
            self.left.pop(record.job_id, None)
        elif event == LogEvent.PROGRESS and self.left:
            left = sum(self.left.values())
            done = self.total - left
            if done / self.total < self.next:
                return
            self.next = done / self.total + STEP
            seconds = seconds_left(
                left, done, time.monotonic() - self.started, self.cores
            )
            say(f"{done / self.total:.0%} of the work, {about(seconds)} left")


def say_time():
    """Print the number of jobs and their expected time, if they run on this machine."""
    if not is_here():
        return
    cores = max(1, workflow.cores // slots())
    work = {job.jobid: expected_s(job) for job in workflow.dag.needrun_jobs()}
    n = len(work)
    say(
        f"{n} job{'s' * (n > 1)}, {about(sum(work.values()) / cores)}"
        f" on {cores} core{'s' * (cores > 1)}. Ctrl-C stops; the same command goes on from there"
    )
    if any(work.values()):
        logger.addHandler(ShowTimeLeft(work, cores))


def say_card():
    """Print what the comparisons of the card can find."""
    if CONFIG.card is not None and is_here():
        say(CONFIG.card.promise())


def say_results():
    """Print where the pages are."""
    for norm in CONFIG.card.norm if CONFIG.card is not None else []:
        card = Path(f"results/card/{norm}/card.html").absolute()
        if card.is_file():
            say(f"Card: {card}, .md, .pdf, .json")
    page = Path("results/paper/summary.html").absolute()
    if page.is_file():
        say(f"Summary: {page}, .md, .pdf; figures: {page.parent}/figures")
