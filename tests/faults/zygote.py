"""Jobs without imports: most `python` of a workflow's shell are forks of a process with torch.

A fork is a separate process, killed like any other. Kills then hit jobs at work, not imports.
 Every eighth job starts as always.
"""

import contextlib
import ctypes
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

START = """python() {
  case $1 in
    *scripts/*.py) [ $((RANDOM %% 8)) = 0 ] || { %s -SE %s %s "$@"; return; } ;;
  esac
  command python "$@"
}
"""
PR_SET_NAME = 15


def environment(folder: Path) -> dict[str, str]:
    """Variables with which a non-interactive bash asks the server; started by `serve`."""
    script = folder / "start.sh"
    script.write_text(START % (sys.executable, __file__, folder / "socket"))
    return {"BASH_ENV": str(script)}


def ask(path: str, arguments: list[str]) -> int:
    """Run a script in a fork of the server with this process's files; its exit status."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        start = json.dumps([arguments, str(Path.cwd()), dict(os.environ)]).encode()
        socket.send_fds(server, [len(start).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(start)
        return int(server.recv(16) or b"137")


def serve(path: str) -> None:
    """Fork for each start, for ever; returns in the forks, to run what was asked for."""
    import matplotlib.figure  # noqa: F401, PLC0415 - what scripts import, and nothing of ours
    import pandas  # noqa: F401, PLC0415
    import pydantic_settings  # noqa: F401, PLC0415
    import safetensors.torch  # noqa: F401, PLC0415
    import scipy.stats  # noqa: F401, PLC0415
    import torch._dynamo  # noqa: F401, PLC0415
    import transformers  # noqa: F401, PLC0415

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        while True:
            asking, _ = listening.accept()
            if os.fork():
                asking.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            length, files, _, _ = socket.recv_fds(asking, 4, 3)
            with asking.makefile("rb") as f:
                arguments, at, env = json.loads(f.read(int.from_bytes(length, "big")))
            if job := os.fork():
                for file in files:
                    os.close(file)
                _, status = os.waitpid(job, 0)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(BrokenPipeError):  # who asked was killed
                    asking.sendall(str(code if code >= 0 else 128 - code).encode())
                os._exit(0)
            asking.close()
            become(arguments, at, env, files)
            return


def become(arguments: list[str], at: str, env: dict[str, str], files: list[int]) -> None:
    """Take over what makes a process: name, directory, environment, files, arguments, path."""
    name = f"@{Path(arguments[0]).stem}"  # of which the kernel keeps 15 characters
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
    os.chdir(at)
    os.environ.clear()
    os.environ.update(env)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent.resolve())
    sys.path[1:1] = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
