"""What the start of the workflow imports, and the remaining time that a run prints."""

import json
import logging
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest
from processes import ROOT, SCRIPTS
from snakemake_interface_logger_plugins.common import LogEvent

from normscope.progress import Countdown, about

SLOW = {"matplotlib", "numpy", "pandas", "scipy", "statsmodels", "torch", "transformers"}
IMPORTED = "import json, sys\n{imports}\nprint(json.dumps(sorted(sys.modules)))"


def imports() -> list[str]:
    """The statements by which the Snakefile and its rules import this package."""
    files = [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    form = re.compile(r"^(?:import normscope|from normscope)[^(\n]*(?:\([^)]*\))?", re.MULTILINE)
    return [statement for file in files for statement in form.findall(file.read_text())]


def test_what_the_workflow_imports_loads_no_slow_package():
    statements = imports()
    assert len(statements) > 10
    code = IMPORTED.format(imports="\n".join(statements))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "normscope.config" in loaded
    assert not loaded & SLOW


def test_no_script_stands_for_an_installed_package():
    """Python looks for modules next to the script first: scripts/tabulate.py would break torch."""
    installed = {*packages_distributions(), *sys.stdlib_module_names}
    assert {path.stem for path in SCRIPTS.rglob("*.py")} & installed == set()


def test_the_time_left_is_the_work_at_the_pace_of_each_rule(capsys: pytest.CaptureFixture[str]):
    """A job starts in 2 s, and then takes 1 s per operation of a, and 4 s per operation of b."""
    work: dict[str, dict[str, float]] = {
        "a_train": {"1": 100, "2": 50},
        "b_train": {"1": 10, "2": 20},
        "c_train": {"1": 1},
    }
    countdown = Countdown(work)
    ids = iter(range(100))

    def log(event: LogEvent, at: float, **fields: object) -> None:
        countdown.emit(logging.makeLogRecord({"event": event, "created": 1000 + at, **fields}))

    def run(rule: str, name: str, start: float, end: float) -> None:
        job = next(ids)
        log(LogEvent.JOB_INFO, start, jobid=job, rule_name=rule, wildcards={"name": name})
        log(LogEvent.JOB_FINISHED, end, job_id=job)
        log(LogEvent.PROGRESS, end)

    def line(left: float, done: float, elapsed: float) -> str:
        return f"{done / (done + left):.0%} of the work, {about(left * elapsed / done)} left\n"

    log(LogEvent.RUN_INFO, 0, stats={"text": 1, "figure": 3, "a_train": 2, "b_train": 2})
    countdown.prints = True
    run("text", "", 0, 2)
    assert capsys.readouterr().err == ""  # a text says nothing of trainings
    run("a_train", "1", 0, 102)
    # one job of a, two of b with 15 operations on average, at the pace of a, and the figures
    assert capsys.readouterr().err == line((2 + 50) + 2 * (2 + 15) + 3 * 2, 2 + 102, 102)
    run("b_train", "1", 102, 144)  # it was slower: a smaller share is not printed
    run("a_train", "2", 102, 154)
    assert capsys.readouterr().err == line((2 + 80) + 3 * 2, 2 + 102 + 42 + 52, 154)
    for _ in range(3):
        run("figure", "", 154, 156)
    run("b_train", "2", 154, 236)
    assert capsys.readouterr().err == ""  # nothing is left
