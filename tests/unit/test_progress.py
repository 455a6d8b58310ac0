"""The remaining time that a run prints, from Snakemake's own log of a small workflow."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.progress import LOGGER, Countdown, about
from normscope.studies.study import Size

SNAKEFILE = """
from normscope.progress import LOGGER, Countdown
from normscope.studies.study import Size

countdown = Countdown({"a_train": {n: Size(2, float(n)) for n in "123"}})
LOGGER.addHandler(countdown)

onstart:
    countdown.start()

rule all:
    input: "1.txt", "2.txt", "probe.txt"

rule a_train:
    output: "{name}.txt"
    priority: lambda wildcards: int(wildcards.name)
    shell: "sleep 1.2; touch {output}"

rule a_probe:
    input: "3.txt"
    output: "probe.txt"
    priority: 9
    shell: "exit 1"
"""


def test_a_run_prints_what_it_trains_and_the_remaining_time_after_its_first_training(
    tmp_path: Path,
):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--keep-going", "--nocolor"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "5 jobs. Models to train, at most: a 6 in 3 jobs. Ctrl-C stops" in done.stderr
    lines = re.findall(r"^Finished jobid.*|^\d+% of the work, about .* left$", done.stderr, re.M)
    assert [line.partition(" ")[0] == "Finished" for line in lines] == [True, False] * 3
    shares = [int(line.partition("%")[0]) for line in lines[1::2]]
    assert shares == sorted(set(shares))
    (log,) = (tmp_path / ".snakemake/log").iterdir()
    assert lines[1] in log.read_text()


def test_the_time_left_is_the_work_left_at_the_pace_of_each_rule(caplog: pytest.LogCaptureFixture):
    """A job starts in 2 s, and then takes 1 s per operation of a, and 4 s per operation of b."""
    caplog.set_level(logging.INFO, LOGGER.name)
    sizes = {"a_train": {"1": 100, "2": 50}, "b_train": {"1": 10, "2": 20}, "c_train": {"1": 1}}
    countdown = Countdown({r: {n: Size(1, w) for n, w in s.items()} for r, s in sizes.items()})
    ids = iter(range(100))

    def log(event: LogEvent, at: float, **fields: object) -> None:
        countdown.emit(logging.makeLogRecord({"event": event, "created": 1000 + at, **fields}))

    def run(rule: str, name: str, start: float, end: float) -> None:
        job = next(ids)
        log(LogEvent.JOB_INFO, start, jobid=job, rule_name=rule, wildcards={"name": name})
        log(LogEvent.JOB_FINISHED, end, job_id=job)
        log(LogEvent.PROGRESS, end)

    def line(left: float, done: float, elapsed: float) -> str:
        return f"{done / (done + left):.0%} of the work, {about(left * elapsed / done)} left"

    log(LogEvent.RUN_INFO, 0, stats={"text": 1, "figure": 3, "a_train": 2, "b_train": 2})
    countdown.start()
    run("text", "", 0, 2)
    assert caplog.messages[1:] == []  # a text says nothing of trainings
    run("a_train", "1", 0, 102)
    # one job of a, two of b with 15 operations on average, at the pace of a, and the figures
    assert caplog.messages[1:] == [line((2 + 50) + 2 * (2 + 15) + 3 * 2, 2 + 102, 102)]
    run("b_train", "1", 102, 144)  # it was slower: a smaller share is not printed
    run("a_train", "2", 102, 154)
    assert caplog.messages[2:] == [line((2 + 80) + 3 * 2, 2 + 102 + 42 + 52, 154)]
    for _ in range(3):
        run("figure", "", 154, 156)
    run("b_train", "2", 154, 236)
    assert caplog.messages[3:] == []  # nothing is left
