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

from normscope.progress import PACE, START_S, Countdown, about

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


def test_the_time_left_is_the_work_at_the_pace_of_the_finished_jobs(
    capsys: pytest.CaptureFixture[str],
):
    """A job counts as START_S, and a training more by its operations, at PACE."""
    sizes = {"a_train": {"1": 100 * PACE, "2": 50 * PACE}, "b_train": {"1": 10 * PACE}}
    countdown, ids = Countdown(sizes), iter(range(100))

    def log(event: LogEvent, at: float, **fields: object) -> None:
        countdown.emit(logging.makeLogRecord({"event": event, "created": 1000 + at, **fields}))

    def run(rule: str, name: str, start: float, end: float) -> str:
        job = next(ids)
        log(LogEvent.JOB_INFO, start, jobid=job, rule_name=rule, wildcards={"name": name})
        log(LogEvent.JOB_FINISHED, end, job_id=job)
        log(LogEvent.PROGRESS, end)
        return capsys.readouterr().err

    log(LogEvent.RUN_INFO, 0, stats={"text": 1, "figure": 2, "a_train": 2, "b_train": 1})
    seconds = 6 * START_S + 160
    assert countdown.plan([*"ABCDEF"], 2) == (
        f"Trains A, B, C, D and 2 more: 6 jobs, {about(seconds / 2)} on 2 core(s)"
    )
    countdown.prints = True
    assert run("text", "", 0, 2) == ""  # a small part
    assert run("b_train", "1", 0, 0.5) == ""  # from the store
    done, left = 2 * START_S + 100, 3 * START_S + 50
    assert run("a_train", "1", 0, 200) == (
        f"{done / (done + left):.0%} of the work, {about(left * 200 / done)} left\n"
    )
    assert " of the work, " in run("a_train", "2", 200, 300)
    assert run("figure", "", 300, 302) + run("figure", "", 300, 302) == ""  # nothing is left
