"""Downloads from a hub that hangs end within their time limit, with the way out."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pretrained_hub import Handler, Hub, Job

from normscope.errors import Explained
from normscope.hub.recipe import HubSource
from normscope.hub.snapshot import snapshot

LIMIT_S = 3.0
# the kind of request that hangs, by the first part of a name; the second part says how
WHEN = {"description": "revision", "files": "resolve"}
NAMES = ["description/headers", "files/stalls", "files/drips"]


class Hangs(Handler):
    def serve(self, repo: str, kind: str, rest: str) -> None:
        assert isinstance(self.server, HangingHub)
        when, how = repo.split("/")
        if kind != WHEN[when] or self.command == "HEAD":
            super().serve(repo, kind, rest)
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n")
        self.wfile.write(b"X: " if how == "headers" else b"\r\n")
        self.server.hung.add(repo)
        while not self.server.stopped.wait(0.2):
            if how != "stalls":
                self.wfile.write(b" ")


class HangingHub(Hub):
    def __init__(self, folder: Path) -> None:
        self.stopped, self.hung = threading.Event(), set()
        super().__init__(dict.fromkeys(NAMES, folder))
        self.RequestHandlerClass = Hangs


@pytest.fixture(scope="module")
def given_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The error of each download; they run in parallel."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text("{}")
    hub = HangingHub(folder)

    def fetch(name: str) -> str:
        source = HubSource(kind="hub", repo=name, revision="main", timeout_s=LIMIT_S)
        with pytest.raises(Explained) as e:
            snapshot(source)
        return str(e.value)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(NAMES)) as threads:
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_DISABLE_XET", "1")
        yield dict(zip(NAMES, threads.map(fetch, NAMES), strict=True))
    assert hub.hung == set(NAMES)
    hub.stopped.set()
    hub.shutdown()
    hub.server_close()


@pytest.mark.parametrize("name", NAMES)
def test_a_download_that_hangs_ends_with_the_way_out(given_up, name: str):
    assert given_up[name].startswith(f"hub {name}@main: not complete after {LIMIT_S:g} s")


def command(place: Path, limit_s: float) -> list[str]:
    """The command of the rule, for a model whose files arrive one byte at a time."""
    source = {"kind": "hub", "repo": "files/drips", "revision": "main"}
    job = Job(place, {"source": source}, place / "revisions")
    return [sys.executable, *job.command("--fetch-s", str(limit_s))]


def test_the_limit_of_the_rule_replaces_that_of_the_source(given_up, tmp_path: Path):
    done = subprocess.run(command(tmp_path, 2), capture_output=True, text=True, check=True)
    assert "not complete after 2 s, its timeout_s" in done.stderr
    facts = json.loads((tmp_path / "out" / "model.json").read_text())
    assert "not complete after 2 s" in facts["missing"]
