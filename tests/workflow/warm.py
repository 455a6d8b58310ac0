"""Snakemake without its start: forks of a process that has imported it, and nothing of ours."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path


@cache
def server() -> subprocess.Popen[str]:
    """The process that forks: a line of JSON for each start, answered with the exit status."""
    command = [sys.executable, "-P", __file__]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=env, text=True, stdin=pipe, stdout=pipe)
    atexit.register(process.communicate)
    return process


def snakemake(flags: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str]:
    """The exit status of ``snakemake`` with these flags, and what it and its jobs say."""
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("stdout", "stderr")]
        start = {"flags": flags, "cwd": str(cwd), "env": env, "said": [str(p) for p in said]}
        process = server()
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(start), file=process.stdin, flush=True)
        status = int(process.stdout.readline())
        return status, "".join(path.read_text() for path in said)


def serve() -> None:
    """Answer until the input ends."""
    import pandas  # noqa: F401, PLC0415 - what Snakemake imports later, when it reads a Snakefile
    import smart_open  # noqa: F401, PLC0415
    import snakemake.report  # noqa: F401, PLC0415
    from snakemake.cli import main  # noqa: PLC0415

    for line in sys.stdin:
        start = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(start["cwd"])
            os.environ.clear()
            os.environ.update(start["env"])
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for stream, path in enumerate(start["said"], 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
            sys.argv = ["snakemake", *start["flags"]]
            main()  # exits
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
