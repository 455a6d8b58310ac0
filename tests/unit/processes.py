"""Scripts and their flags, programs that a machine may lack, and wheels in a local folder."""

import hashlib
import multiprocessing
import os
import random
import re
import resource
import runpy
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from normscope.io.corpus import WheelSource

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"

# the server imports torch once for all processes
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pandas",
        "pytest",
        "normscope.train.session",
        "normscope.studies.recall.probe",
    ]
)


def run_script(script: Path, arguments: list[str], log: Path, largest_file: int) -> None:
    """Run a script in this process, in which no file may grow beyond a size."""
    with open(log, "w") as f:
        os.dup2(f.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


def flags(**values: Any) -> list[str]:
    """A command line: each value is one word, pydantic models are JSON, None is left out."""
    words = []
    for key, value in values.items():
        if value is not None:
            text = value.model_dump_json() if isinstance(value, BaseModel) else str(value)
            words += [f"--{key.replace('_', '-')}", text]
    return words


class Script:
    """One of scripts/ with its arguments; its output goes to a log.

    Args:
        name: the script, and after a space its study: ``probe jacobian``.
    """

    def __init__(self, name: str, arguments: Sequence[object], log: Path) -> None:
        script, *study = name.split()
        self.path, self.log = SCRIPTS / f"{script}.py", log
        self.arguments = [*study, *(str(a) for a in arguments)]
        self.delays = random.Random(0)

    def start(self, *more: str, largest_file: int = resource.RLIM_INFINITY):
        arguments = (self.path, [*self.arguments, *more], self.log, largest_file)
        process = FORKS.Process(target=run_script, args=arguments)
        process.start()
        return process

    def succeed(self) -> str:
        """Run to the end, and return the log."""
        process = self.start()
        process.join()
        log = self.log.read_text()
        assert process.exitcode == 0, log
        return log

    def fail(self, *more: str, largest_file: int = resource.RLIM_INFINITY) -> str:
        """Run to an error with status 1 and no traceback, and return its message."""
        process = self.start(*more, largest_file=largest_file)
        process.join()
        log = self.log.read_text()
        assert process.exitcode == 1, log
        assert "Traceback" not in log
        message = re.search(r"^error: (.*)", log, re.MULTILINE | re.DOTALL)
        assert message is not None, log
        return message[1]

    def kill_when(self, moment: Callable[[], bool]) -> int | None:
        """Start, and send SIGKILL within 20 ms after the moment; return the exit status."""
        process = self.start()
        while process.is_alive() and not moment():
            time.sleep(0.0005)
        time.sleep(self.delays.uniform(0, 0.02))
        process.kill()
        process.join()
        return process.exitcode


def need(tool: object, reason: str) -> None:
    """Go on only with the tool or file that a test needs.

    Args:
        tool: it, or nothing if it is missing.
        reason: what is missing, and the way out.
    """
    if not tool:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def wheel_source(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: Mapping[str, bytes],
    member: str = "",
) -> WheelSource:
    """Build a wheel of version 1.0, and the source that refers to a file, by default its first."""
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(f"{name}/{file}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    pip = {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(folder)}
    for key, value in pip.items():
        monkeypatch.setenv(f"PIP_{key}", value)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    member = f"{name}/{member or next(iter(files))}"
    return WheelSource(kind="wheel", requirement=f"{name}==1.0", sha256=sha256, member=member)
