"""Sources of a corpus, and a server with every way to fail; the script that reads them."""

import contextlib
import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from processes import SCRIPTS

from normscope.io.corpus import CorpusError, Given, PathSource, Source, UrlSource, fetch

SCRIPT = SCRIPTS / "dataset.py"
TEXT = b"to be or not to be: that is the question\n" * 100
SHA256 = hashlib.sha256(TEXT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves the text at /text, and every way to fail at its own path."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.stopped = threading.Event()
        self.dripped: set[str] = set()  # what it has dripped to the end

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{quote(name, safe='')}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        stopped, name = self.server.stopped, unquote(self.path.removeprefix("/"))
        if name == "silent":
            stopped.wait()
            return
        if name == "drips headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain")
            self.drip(name, b";" * 15)
            self.wfile.write(b"\r\n\r\n" + TEXT)
            return
        if name.startswith("to "):
            self.send_response(302)
            self.send_header("Location", name.removeprefix("to "))
            self.end_headers()
            return
        if name == "endless":
            self.endless()
            return
        if name not in ("text", "altered", "cut", "stalls", "drips"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        if name in ("text", "altered"):
            self.wfile.write(TEXT if name == "text" else TEXT.swapcase())
            return
        self.wfile.write(TEXT[:100])
        if name == "stalls":
            stopped.wait()
        if name == "drips":
            self.drip(name, TEXT[100:115])
            self.wfile.write(TEXT[115:])

    def endless(self) -> None:
        """Without a length, until the other side has enough."""
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(TEXT)

    def drip(self, name: str, data: bytes) -> None:
        """One byte every 0.1 s: each in time, all of them too late."""
        assert isinstance(self.server, Server)
        for i in range(len(data)):
            if self.server.stopped.wait(0.1):
                return
            self.wfile.write(data[i : i + 1])
        self.server.dripped.add(name)

    def log_message(self, format: str, *args) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.stopped.set()
        running.shutdown()


def path_source(path: Path) -> PathSource:
    return PathSource(kind="path", path=str(path))


def url_source(url: str, timeout_s: float = 5) -> UrlSource:
    return UrlSource(kind="url", url=url, timeout_s=timeout_s)


def failure(source: Source) -> str:
    with pytest.raises(CorpusError) as e:
        fetch([source], SHA256)
    assert str(source) in str(e.value)
    return str(e.value)


def script(
    out: Path, *sources: Source, context: int = 1, **origin: str
) -> subprocess.CompletedProcess[str]:
    """The script, for an origin of the tokens: ``sha256`` with sources, or ``directory``."""
    given = out.with_name("corpus.json")
    given.write_text(Given(sources=list(sources), context=context).model_dump_json())
    command = [sys.executable, str(SCRIPT), "--recipe", json.dumps(origin)]
    command += ["--given", str(given), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    message = re.search(r"^error: (.*)", done.stderr, re.MULTILINE | re.DOTALL)
    assert message is not None
    return message[1]
