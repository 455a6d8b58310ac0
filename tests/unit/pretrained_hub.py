"""A hub on this machine, and measurements in processes that take it for the real one."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pretrained_models import PROMPTS
from processes import SCRIPTS

COMMITS = ["a" * 40, "b" * 40]

# measures each job in a fork of one process that has imported what takes long
DRIVER = """
import json, os, runpy, sys, traceback
import pandas, pydantic_settings, torch
import normscope.hub.loading, normscope.hub.source, normscope.words
import transformers.models.gpt2.modeling_gpt2

def run(job):
    log = os.open(job["log"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = job["command"]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for job in json.loads(sys.stdin.read()):
    pid = os.fork()
    if pid == 0:
        status = run(job)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
os._exit(0)  # tidying up takes a second
"""


class Hub(ThreadingHTTPServer):
    """Models from folders, and repositories named for how they fail.

    The branch of org/moves is another commit from the second time on. ``tokens``: what was sent.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, folders: Mapping[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folders = folders
        self.asked: Counter[str] = Counter()
        self.tokens: set[str | None] = set()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may go away."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Hub)
        return self.server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(content))} | dict(headers)).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, code: str | None = None, message: str = "no") -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.answer(status, json.dumps({"error": message}).encode(), headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization")
        self.hub.tokens.add(authorization)
        path = self.path.partition("?")[0].removeprefix("/").removeprefix("api/models/")
        repo = "/".join(path.split("/")[:2])
        kind, _, rest = path.removeprefix(repo).removeprefix("/").partition("/")
        echo = f"who is {authorization}?"
        if repo == "org/gated":
            self.refuse(403, "GatedRepo", f"Access is restricted. {echo}")
        elif repo == "org/echo":
            self.refuse(401, "Other", echo)
        elif repo == "org/teapot":
            self.refuse(418, None, echo)
        elif repo == "org/warns" and kind == "revision":
            self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound", "X-HF-Warning": f"t;{echo}"})
        elif repo == "org/breaks" and kind == "resolve":
            self.close_connection = True
        elif repo not in self.hub.folders:
            self.refuse(404, "RepoNotFound", "Repository not found")
        else:
            self.serve(repo, kind, rest)

    def serve(self, repo: str, kind: str, rest: str) -> None:
        folder = self.hub.folders[repo]
        files = {p.name: p.read_bytes() for p in folder.iterdir()}
        if kind == "revision":
            if rest not in ("main", *COMMITS):
                self.refuse(404, "RevisionNotFound", "Invalid rev id")
                return
            self.hub.asked[repo] += 1
            moved = repo == "org/moves" and self.hub.asked[repo] > 1
            commit = rest if rest in COMMITS else COMMITS[moved]
            siblings = [{"rfilename": name} for name in files]
            info = {"_id": "0", "id": repo, "modelId": repo, "sha": commit, "siblings": siblings}
            self.answer(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
        elif kind == "tree":
            tree = [
                {"type": "file", "path": n, "size": len(c), "oid": hashlib.sha1(c).hexdigest()}
                for n, c in files.items()
            ]
            self.answer(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
        else:
            commit, _, name = rest.partition("/")
            content = files[name]
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            self.answer(200, content, {"X-Repo-Commit": commit, "ETag": etag})


@dataclass(frozen=True)
class Job:
    """A model to measure; ``place`` is its folder."""

    place: Path
    model: Mapping[str, Any]
    revisions: Path
    memory_mb: int = 1000
    prompts: Path = PROMPTS

    @property
    def out(self) -> Path:
        return self.place / "out"

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.out / "model.json").read_text())

    def described(self) -> dict[str, Any]:
        self.place.mkdir(parents=True)
        self.out.mkdir()
        flags = {
            "recipe": json.dumps(self.model),
            "prompts": self.prompts,
            "memory-mb": self.memory_mb,
            "weights": self.place / "weights",
            "revisions": self.revisions,
            "out": self.out,
        }
        command = [str(SCRIPTS / "pretrained_probe.py")]
        for key, value in flags.items():
            command += [f"--{key}", str(value)]
        return {"log": str(self.place / "log"), "command": command}


def measure(jobs: Sequence[Job], home: Path, **environment: str) -> list[int]:
    """The exit status of every job, one after the other; ``home`` is the hub's cache."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([job.described() for job in jobs]),
        env={k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        | {"HF_HOME": str(home), "HOME": str(home), "OMP_NUM_THREADS": "1"}
        | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.splitlines()]
