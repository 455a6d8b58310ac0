"""Hub models: a refusal is recorded as the result of the model, and no output has the token."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from pretrained_hub import COMMITS, Hub, Job, measure
from pretrained_models import PROMPTS, load, outcomes, random_model, save

from normscope.hub.measurement import rows
from normscope.hub.prompts import read_prompts

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
