"""Models of the hub: what it refuses is the result of that model, and no token gets out."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from pretrained_hub import COMMITS, Hub, Job, measure
from pretrained_models import PROMPTS, in_memory, outcomes, random_model, save

from normscope.hub.measurement import rows
from normscope.hub.prompts import read_prompts
from normscope.hub.recipe import HubSource
from normscope.hub.source import Unavailable, check_commit

pytestmark = pytest.mark.long

TOKEN = "hf_" + "Secret7" * 5

# how a repository fails, and what the reason says; the way out is in it where there is one
REASONS = {
    "gated": ["is gated", "huggingface.co/org/gated", "HF_TOKEN"],
    "missing": ["does not have it", "mend the name", "hf auth login"],
    "complete@nowhere": ["no revision nowhere", "/tree/main"],
    "empty": ["weights in no known format"],
    "echo": ["401"],
    "teapot": ["418"],
    "warns": ["does not have it"],
    "breaks": ["disconnected"],
    "no--repo": ["no--repo"],
}
MEASURED = ["complete", f"complete@{COMMITS[1]}", "moves"]


@dataclass(frozen=True)
class Runs:
    """Every job of one process, in order, by its name; ``moved`` is the second of its model."""

    home: Path
    hub: Hub
    jobs: dict[str, Job]
    status: dict[str, int]


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
    environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    status = measure(list(jobs.values()), home / "cache", **environment)
    yield Runs(home, hub, jobs, dict(zip(jobs, status, strict=True)))
    hub.shutdown()
    hub.server_close()


@pytest.mark.parametrize("name", REASONS)
def test_what_the_hub_refuses_is_a_result_with_its_reason(runs, name):
    job = runs.jobs[name]
    assert runs.status[name] == 0, job.log
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
    assert runs.status[name] == 0, job.log
    assert job.facts["missing"] is None
    assert job.facts["commit"] == (COMMITS[1] if name.endswith(COMMITS[1]) else COMMITS[0])
    assert job.facts["source"] == f"hub org/{name}" + ("" if "@" in name else "@main")
    loaded = in_memory(runs.home / "complete")
    gains = pd.read_csv(job.out / "gains.csv", keep_default_na=False, na_values=[""])
    assert len(gains) == 6 * len(read_prompts(PROMPTS))
    expected = {
        (r["prompt"], r["bos"]): r["last_gain"]
        for r in rows(outcomes(loaded), loaded.body, loaded.tokenizer)[0]
        if r["positions"] == "last"
    }
    at_last = gains[gains["positions"] == "last"].set_index(["prompt", "bos"])["last_gain"]
    for key, value in expected.items():
        assert at_last[key] == pytest.approx(value, rel=1e-5)


def test_a_branch_that_moved_is_an_error_that_names_both_commits(runs):
    assert runs.status["moved"] == 0
    reason = runs.jobs["moved"].facts["missing"]
    assert all(commit in reason for commit in COMMITS)
    assert "org/moves@main" in reason
    assert runs.jobs["moves"].facts["commit"] == COMMITS[0]


def test_the_token_is_sent_and_in_no_output_log_or_file(runs):
    assert f"Bearer {TOKEN}" in runs.hub.tokens
    files = [path for path in runs.home.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [str(path) for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_a_hub_that_is_not_there_is_a_result_with_its_reason(runs, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{s.getsockname()[1]}"
    models = {n: {"source": source(n)} for n in ("never", "complete")}
    jobs = [Job(tmp_path / n, model, tmp_path / "revisions") for n, model in models.items()]
    assert measure(jobs, runs.home / "cache", HF_ENDPOINT=nobody, HF_TOKEN=TOKEN) == [0, 0]
    never, complete = jobs
    assert "does not answer" in never.facts["missing"]
    assert "Traceback" not in never.log
    assert complete.facts["missing"] is None  # from the hub's own cache
    assert complete.facts["commit"] == COMMITS[0]


def test_a_commit_is_recorded_and_another_one_later_names_both_and_the_way_out(tmp_path):
    hub = HubSource(kind="hub", repo="org/model", revision="main")
    check_commit(tmp_path, hub, COMMITS[0])
    check_commit(tmp_path, hub, COMMITS[0])
    with pytest.raises(Unavailable) as e:
        check_commit(tmp_path, hub, COMMITS[1])
    (record,) = tmp_path.iterdir()
    for part in (*COMMITS, "org/model@main", str(record)):
        assert part in str(e.value)
    check_commit(tmp_path, hub.model_copy(update={"revision": "v2"}), COMMITS[1])
    check_commit(tmp_path, hub.model_copy(update={"repo": "org/other"}), COMMITS[1])
    record.unlink()
    check_commit(tmp_path, hub, COMMITS[1])
