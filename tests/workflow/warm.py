"""Quick starts of Python: forks of a server that has imported the packages that jobs use.

`python`, `snakemake` and `dvc` in a folder for PATH ask the server for a fork. The server imports
no module of this project. `.ci/end-to-end` runs the workflow without it.
"""

import atexit
import ctypes
import gc
import importlib.util
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any

PR_SET_NAME = 15  # the kernel keeps 15 characters of a name
CLIENT = """#!{python} -SE
import json, os, socket, sys
program, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if program == "python" and not (words and "scripts/" in words[0]):
    os.execv({python!r}, [{python!r}, *words])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps([program, words, os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(9) or 1))  # no answer: the fork was killed
"""


@cache
def programs() -> Path:
    """Start the server, and return the folder with `python`, `snakemake` and `dvc`."""
    folder = Path(tempfile.mkdtemp())
    address = str(folder / "socket")
    for name in ("python", "snakemake", "dvc"):
        client = folder / name
        client.write_text(CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, address]
    process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    atexit.register(process.communicate)
    return folder


def serve(address: str) -> None:
    """Fork for each client."""
    import dvc.cli  # noqa: F401, PLC0415
    import matplotlib.backends.backend_pdf  # noqa: PLC0415
    import matplotlib.backends.backend_svg  # noqa: PLC0415
    import matplotlib.figure  # noqa: F401, PLC0415
    import pydantic_settings  # noqa: F401, PLC0415
    import safetensors.torch  # noqa: F401, PLC0415
    import scipy.optimize  # noqa: PLC0415
    import scipy.stats  # noqa: F401, PLC0415
    import smart_open  # noqa: F401, PLC0415
    import snakemake.report  # noqa: F401, PLC0415
    import statsmodels.regression.linear_model  # noqa: F401, PLC0415
    import sympy  # noqa: F401, PLC0415 - which torch loads for what it maps
    import torch.func  # noqa: F401, PLC0415
    from snakemake import cli  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: F401, PLC0415

    cli.get_argument_parser()  # it loads the plugins
    gc.freeze()  # statsmodels collects garbage at each call
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        forks = 0
        while server in select.select([server, sys.stdin], [], [])[0]:  # else the tests have ended
            client, _ = server.accept()
            if not os.fork():
                server.close()
                answer(client, str(Path(address).with_name("python")))
            client.close()
            forks += 1
            while forks and os.waitpid(-1, os.WNOHANG)[0]:
                forks -= 1


def answer(client: socket.socket, python: str) -> None:
    """Run what the client asks for, and send it the exit status."""
    _, descriptors, *_ = socket.recv_fds(client, 1, 3)
    for standard, given in enumerate(descriptors):
        os.dup2(given, standard)
    program, words, cwd, env = json.load(client.makefile())
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [program, *words]
    status: Any = 1
    try:
        if program == "python":
            sys.argv = words
            name = f"@{Path(words[0]).stem}".encode()  # tests of faults find jobs by it
            ctypes.CDLL(None).prctl(PR_SET_NAME, name)
            run(words[0])
        elif program == "snakemake":
            from snakemake.cli import main  # noqa: PLC0415

            sys.executable = python  # whose folder is put first on the PATH of jobs
            main()
        else:
            from dvc.cli import main  # noqa: PLC0415

            sys.exit(main(words))
        status = 0
    except SystemExit as e:
        status = e.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        client.send(str(int(status or 0)).encode())
        os._exit(0)


def run(script: str) -> None:
    """Run a script as Python does, and record the files of the project that it reads."""
    read: set[str] = set()
    here = Path.cwd()

    def opened(event: str, values: Any) -> None:
        if event != "open" or not isinstance(values[0], str | Path):
            return
        path, mode = here / values[0], values[1] or "r"
        if path.is_relative_to(here) and mode.startswith("r"):
            if path.suffix == ".pyc":  # of a module that was compiled before
                path = Path(importlib.util.source_from_cache(path))
            read.add(str(path.relative_to(here)))

    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(Path(script).resolve().parent), *filter(None, given)]
    sys.addaudithook(opened)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        with open("results/read.jsonl", "a") as file:
            file.write(json.dumps({"job": sys.argv, "read": sorted(read)}) + "\n")


if __name__ == "__main__":
    serve(sys.argv[1])
