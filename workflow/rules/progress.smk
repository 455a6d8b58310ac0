# What a run on one machine prints: what it trains, its remaining time as the work proceeds, errors
# and warnings, and at the end the location of the page. This file defines functions only; the
# Snakefile calls them.
import logging

from snakemake_interface_logger_plugins.common import LogEvent

from normscope.progress import LOGGER, Countdown

# What Snakemake logs about the run and about each job: thousands of lines. They are in its log file.
DETAILS = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.RUN_INFO),
    *(LogEvent.JOB_INFO, LogEvent.JOB_STARTED),
    *(LogEvent.JOB_FINISHED, LogEvent.PROGRESS),
}
DETAILS_BY_TEXT = (
    *("Select jobs to execute", "Job rate limit reached"),
    *("Moving output file", "Symlinking output file", "DAG of jobs will be updated"),
)


def is_for_terminal(record):
    """Whether a message is an error, a warning, or something other than a detail."""
    is_detail = getattr(record, "event", None) in DETAILS
    is_detail = is_detail or str(record.msg).startswith(DETAILS_BY_TEXT)
    return record.levelno > logging.INFO or not is_detail


def keep_terminal_short():
    """Leave details to the log file."""
    for handler in LOGGER.handlers:
        is_file = isinstance(handler, logging.FileHandler)
        if isinstance(handler, logging.StreamHandler) and not is_file:
            handler.addFilter(is_for_terminal)


def say_start():
    """Print what this run trains, and what the comparisons of the card can find."""
    if not IS_CLUSTER:
        COUNTDOWN.start()
        if CONFIG.card is not None:
            LOGGER.info(CONFIG.card.promise())


def say_results():
    """Print where the pages are."""
    for norm in CONFIG.card.norm if CONFIG.card is not None else []:
        card = Path(f"results/card/{norm}/card.html").absolute()
        if card.is_file():
            LOGGER.info(f"Card: {card}; its tables: results/card/tables")
    page = Path("results/paper/summary.html").absolute()
    if page.is_file():
        LOGGER.info(f"Summary: {page}, .md, .pdf; figures: {page.parent}/figures")
