"""A hub on this machine, and measurements of its models."""

import contextlib
import hashlib
import json
import os
import runpy
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from pretrained_models import PROMPTS
from processes import SCRIPTS

COMMITS = ["a" * 40, "b" * 40]


class Hub(ThreadingHTTPServer):
    """Serves models from folders, and repositories that fail in the way that their name says.

    The branch of org/moves points to another commit from the second request on. ``tokens`` are the
    tokens that clients sent.
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
        """Clients may disconnect."""


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
    """A model to measure; ``place`` is the directory of the job."""

    place: Path
    model: Mapping[str, Any]
    revisions: Path
    memory_mb: int = 1000

    @property
    def out(self) -> Path:
        return self.place / "out"

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.out / "model.json").read_text())

    def command(self, *more: str) -> list[str]:
        flags = {
            "recipe": json.dumps(self.model),
            "prompts": PROMPTS,
            "memory-mb": self.memory_mb,
            "weights": self.place / "weights",
            "revisions": self.revisions,
            "out": self.out,
        }
        words = [str(word) for key, value in flags.items() for word in (f"--{key}", value)]
        return [str(SCRIPTS / "pretrained_probe.py"), *words, *more]


def measure(job: Job, home: Path, **environment: str) -> None:
    """Run the script in this process; ``home`` holds the cache of the hub's client."""
    job.out.mkdir(parents=True)
    command, precision = job.command(), torch.get_float32_matmul_precision()
    environment |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch("sys.argv", command),
        (job.place / "log").open("w") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        runpy.run_path(command[0], run_name="__main__")
    torch.set_float32_matmul_precision(precision)
