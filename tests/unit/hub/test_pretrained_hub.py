"""Models from the hub, also when it hangs."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from pretrained_models import (
    COMMITS,
    Handler,
    Hub,
    Job,
    load,
    measure,
    outcomes,
    prompts,
    random_model,
    save,
)

from normscope.errors import Explained
from normscope.hub.measurement import rows
from normscope.hub.recipe import HubSource
from normscope.hub.snapshot import snapshot

TOKEN = "hf_" + "Secret7" * 5

# for each failing repository, parts of the recorded reason, with the way out if there is one
REASONS = {
    "gated": ["is gated", "huggingface.co/org/gated", "HF_TOKEN"],
    "missing": ["does not exist", "correct its name", "hf auth login"],
    "complete@nowhere": ["no revision nowhere", "/tree/main"],
    "empty": ["no weights in a known format"],
    "echo": ["401"],
    "warns": ["does not exist"],
    "breaks": ["disconnected"],
    "no--repo": ["no--repo"],
}
MEASURED = ["complete", f"complete@{COMMITS[1]}", "moves"]


@dataclass(frozen=True)
class Runs:
    """Jobs by name, in the order in which they ran; ``moved`` is the second of ``moves``."""

    home: Path
    hub: Hub
    jobs: dict[str, Job]


def source(name: str) -> dict:
    repo, _, revision = name.partition("@")
    return {"kind": "hub", "repo": f"org/{repo}", "revision": revision or "main"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[Runs]:
    home = tmp_path_factory.mktemp("hub")
    complete = save(random_model("gpt2"), home / "complete")
    empty = save(random_model("gpt2"), home / "empty")
    for path in empty.glob("*.safetensors*"):
        path.unlink()
    folders = {"complete": complete, "breaks": complete, "moves": complete, "empty": empty}
    hub = Hub({f"org/{name}": folder for name, folder in folders.items()})
    names = [*REASONS, *MEASURED]
    jobs = {n: Job(home / "jobs" / n, {"source": source(n)}, home / "revisions") for n in names}
    jobs["moved"] = Job(home / "jobs" / "moved", {"source": source("moves")}, home / "revisions")
    for job in jobs.values():
        measure(job, home / "cache", HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN)
    yield Runs(home, hub, jobs)
    hub.shutdown()
    hub.server_close()


@pytest.mark.parametrize("name", REASONS)
def test_a_refusal_of_the_hub_is_a_result_with_its_reason(runs, name):
    job = runs.jobs[name]
    reason = job.facts["missing"]
    for part in REASONS[name]:
        assert part in reason
    assert f"org/{name.partition('@')[0]}" in reason
    assert job.log.splitlines().count(f"error: {reason}".splitlines()[0]) == 1
    assert "Traceback" not in job.log
    for table in ("gains", "norms"):
        assert len(pd.read_csv(job.out / f"{table}.csv")) == 0


@pytest.mark.parametrize("name", MEASURED)
def test_a_model_of_the_hub_is_measured(runs, name):
    job = runs.jobs[name]
    assert job.facts["missing"] is None, job.log
    assert job.facts["commit"] == (COMMITS[1] if name.endswith(COMMITS[1]) else COMMITS[0])
    assert job.facts["source"] == f"hub org/{name}" + ("" if "@" in name else "@main")
    loaded = load(runs.home / "complete")
    gains = pd.read_csv(job.out / "gains.csv", keep_default_na=False, na_values=[""])
    assert len(gains) == 6 * len(prompts())
    expected = {
        (r["prompt"], r["bos"]): r["last_gain"]
        for r in rows(outcomes(loaded), loaded.body, loaded.tokenizer)[0]
        if r["positions"] == "last"
    }
    at_last = gains[gains["positions"] == "last"].set_index(["prompt", "bos"])["last_gain"]
    for key, value in expected.items():
        assert at_last[key] == pytest.approx(value, rel=1e-5)


def test_a_branch_that_moved_is_an_error_that_names_both_commits(runs):
    reason = runs.jobs["moved"].facts["missing"]
    assert all(commit in reason for commit in COMMITS)
    assert "org/moves@main" in reason
    assert runs.jobs["moves"].facts["commit"] == COMMITS[0]


def test_the_token_is_sent_and_appears_in_no_output_log_or_file(runs):
    assert f"Bearer {TOKEN}" in runs.hub.tokens
    files = [path for path in runs.home.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [str(path) for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_an_unreachable_hub_is_a_result_with_its_reason(runs, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{s.getsockname()[1]}"
    models = {n: {"source": source(n)} for n in ("never", "complete")}
    jobs = [Job(tmp_path / n, model, tmp_path / "revisions") for n, model in models.items()]
    for job in jobs:
        measure(job, runs.home / "cache", HF_ENDPOINT=nobody, HF_TOKEN=TOKEN)
    never, complete = jobs
    assert "does not answer" in never.facts["missing"]
    assert "Traceback" not in never.log
    assert complete.facts["missing"] is None  # from the cache
    assert complete.facts["commit"] == COMMITS[0]


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


def test_the_limit_of_the_rule_replaces_that_of_the_source(given_up, tmp_path: Path):
    source = {"kind": "hub", "repo": "files/drips", "revision": "main"}
    job = Job(tmp_path, {"source": source}, tmp_path / "revisions")
    measure(job, tmp_path / "cache", "--fetch-s", "2")
    assert "not complete after 2 s, its timeout_s" in job.log
    assert "not complete after 2 s" in job.facts["missing"]
