"""A hub that hangs: the model is given up within its time limit, with the way out."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pretrained_hub import Handler, Hub

from normscope.pretrained.grid import HubSource
from normscope.pretrained.hub import Unavailable, snapshot

LIMIT_S = 5.0
# what is asked for when a repository hangs, and how it does
WHEN = {"description": "revision", "files": "resolve"}
NAMES = ["description/stalls", "description/headers", "files/stalls", "files/drips"]


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
def given_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, float]]]:
    """Reason and seconds of every model, fetched side by side."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text("{}")
    hub = HangingHub(folder)

    def fetch(name: str) -> tuple[str, float]:
        began = time.monotonic()
        source = HubSource(kind="hub", repo=name, revision="main", timeout_s=LIMIT_S)
        with pytest.raises(Unavailable) as e:
            snapshot(source)
        return str(e.value), time.monotonic() - began

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
def test_a_hub_that_hangs_is_given_up_with_the_way_out(given_up, name: str):
    reason, seconds = given_up[name]
    assert reason == (
        f"hub {name}@main: no end after {LIMIT_S:g} s, its timeout_s: start again, which goes on "
        "from what has come, or raise it"
    )
    assert LIMIT_S <= seconds < 60  # with the start of Python, side by side with the others
