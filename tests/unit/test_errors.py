"""Errors that a user can fix end a script with one message; others keep their traceback."""

import subprocess
import sys
import time

import pytest
from pydantic import ValidationError

from normscope.config import ConfigError
from normscope.errors import run_script
from normscope.nn.recipe import Norm


def invalid() -> ValidationError:
    with pytest.raises(ValidationError) as e:
        Norm.model_validate({"eps": -1})
    return e.value


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigError("why"), "why"),
        (FileNotFoundError(2, "No such file", "f"), "[Errno 2] No such file: 'f'"),
        (invalid(), "eps: Input should be greater than 0, got -1 (int)"),
    ],
)
def test_an_error_that_a_user_can_fix_ends_with_its_message(error: Exception, said: str):
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as e:
        run_script(main)
    assert e.value.code == f"error: {said}"  # Python prints a text and ends with status 1


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        run_script(lambda: 1 / 0)  # pyright: ignore[reportArgumentType]


SAY = """
import sys
from normscope.errors import run_script

def main():
    print("at work", file=sys.stderr, flush=True)
    sys.stdin.read()

run_script(main)
"""


def test_a_job_waits_for_the_one_that_has_its_log(tmp_path):
    log = tmp_path / "log"

    def start(stdin: int) -> subprocess.Popen:
        with open(log, "a") as f:
            return subprocess.Popen([sys.executable, "-c", SAY], stdin=stdin, stderr=f)

    with start(subprocess.PIPE) as orphan:
        while not log.read_text():
            assert orphan.poll() is None
            time.sleep(0.01)
        with start(subprocess.DEVNULL) as second:
            while "waiting" not in log.read_text():
                assert second.poll() is None
                time.sleep(0.01)
            assert second.poll() is None
            assert log.read_text().count("at work") == 1
            orphan.kill()
            assert second.wait() == 0
    assert log.read_text().count("at work") == 2
