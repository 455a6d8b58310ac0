"""Failures of trainings and measurements: the other results are made, and a repair is noticed."""

import os
import re
import shutil
import time
from pathlib import Path

import pytest
import yaml
from project import DRAWN, Project


@pytest.fixture(scope="module")
def diverged(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The made project with a loss bound at which every training diverges, up to the summary."""
    project = made.copy(tmp_path_factory.mktemp("diverged") / "project")
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    trainings = [protocol["training"] for protocol in config["jacobian"]["protocols"].values()]
    for part in (
        config["main"]["protocols"]["nanogpt"]["training"],
        *config["recall"]["tasks"].values(),
        *trainings,
    ):
        part["loss_bound"] = 0.01
    config["main"]["runs"] = config["main"]["runs"][:1]
    (project.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    project.snakemake("results/paper/summary.md")
    return project


def test_divergence_is_a_result(diverged: Project):
    summary = " ".join((diverged.root / "results/paper/summary.md").read_text().split())
    assert "Of 2 models, 2 diverged and 2 failed." in summary
    # ln 9, of as many characters
    row = "| LayerNorm, pre | 2 | 1 | 0.001 | 2 | 2.197 | \\[2.197, 2.197\\] | – | – | baseline |"
    assert row in summary
    assert "| LayerNorm | 0.01 | 0, 2 diverged | – |" in summary
    # neither does its twin with the exact backward pass
    _, cost = summary.split("| center_scale | all | 1 | 1 | ")
    assert cost.split(" | ")[2:6] == ["+0.000", "–", "2.197", "–"]
    captions = [diverged.root / "results/paper/figures" / f"{figure}.txt" for figure in DRAWN]
    assert "no such model was trained" in captions[0].read_text()  # none with two norms
    assert all(re.search("Diverged(, and| or)", path.read_text()) for path in captions[1:])


MADE = (
    "store",
    "results/dataset",
    "results/paper",
    *(f"results/{study}/{part}" for study in ("main", "recall") for part in ("tables", "probes")),
)
PAPER = "results/paper"
DAMAGED = (
    "results/main/tables/runs.csv",
    f"{PAPER}/figures/loss.svg",
    f"{PAPER}/plots/loss.csv",
)
MISSING = (
    "results/main/tables/arms.csv",
    "results/recall/models/recall-layernorm-0.01-1/SHA256SUMS",
    f"{PAPER}/figures/dose.txt",
    f"{PAPER}/tables/scoreboard.tex",
)


def facts(project: Project) -> dict[str, tuple[object, ...]]:
    """What a file system knows of every result, without following links."""
    paths = [p for name in ("results", "store") for p in (project.root / name).rglob("*")]
    stats = {str(path): path.lstat() for path in paths}
    return {path: (s.st_mode, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats.items()}


def test_a_copy_of_a_finished_project_is_finished_and_a_dry_run_changes_nothing(
    made: Project, tmp_path: Path
):
    """And what is damaged or missing in it is made again, with the same bytes."""
    project = made.copy(tmp_path / "project")
    links = [path for path in (project.root / "results").rglob("*") if path.is_symlink()]
    assert links
    assert all(path.resolve().is_relative_to(project.root.resolve()) for path in links)
    os.umask(umask := os.umask(0))
    modes = {path.stat().st_mode & 0o777 for path in (project.root / "store").glob("?" * 64 + "*")}
    assert modes == {0o666 & ~umask}
    before = facts(project)
    assert project.planned() == {}
    assert facts(project) == before

    wholes = {folder: project.digests(folder) for folder in MADE}
    for name in DAMAGED:
        path = project.root / name
        raw = path.read_bytes()
        path.write_bytes(raw[:-2] + bytes([raw[-2] ^ 1]) + raw[-1:])
    for name in MISSING:
        (project.root / name).unlink()
    old, new = (project.root / "store" / name for name in ("tmp0", "tmp1"))  # of killed jobs
    for folder in (old, new):
        folder.mkdir()
    then = time.time() - 100_000
    os.utime(old, (then, then))
    before = facts(project)
    plan = project.snakemake("-n")
    assert facts(project) == before
    shown = [name.replace("/plots/loss.csv", "/plots") for name in DAMAGED]
    for name in shown:
        assert f"{name} is damaged: the next run makes it again" in plan
    output = project.snakemake()
    for name in shown:
        assert f"{name} is damaged: it is made again" in output
    assert {folder: project.digests(folder) for folder in MADE} == wholes
    assert not old.exists()
    assert new.exists()  # its job may be running
    assert project.planned() == {}


def test_a_damaged_model_is_made_again(made: Project):
    """With the same bytes, so that nothing that reads it runs again."""
    weights = "results/recall/models/recall-layernorm-0.01-1/models.safetensors"
    stored = (made.root / weights).resolve()
    whole = stored.read_bytes()
    stored.chmod(0o644)
    stored.write_bytes(whole[:100])
    output = made.snakemake(weights)
    assert re.search(r"^recall_train +1$", output, re.MULTILINE)
    assert f"{stored} is damaged: it is made again" in output
    assert (made.root / weights).read_bytes() == whole
    assert made.planned() == {}


def test_the_terminal_shows_errors_and_the_log_shows_every_job(made: Project):
    details = ("rule figure_loss:", "Select jobs", "Finished jobid")
    figure, draw = "src/normscope/studies/main/figures/loss.py", "def draw("
    with made.edited(figure, draw, f'raise ValueError("no loss today")\n\n\n{draw}'):
        output = made.snakemake("figure_loss", ok=False)
    assert "Error in rule figure_loss:" in output
    assert "ValueError: no loss today" in output  # the end of the job's log
    assert not [text for text in details if re.search(f"^{text}", output, re.MULTILINE)]
    output = made.snakemake("figure_loss", "figure_dose", "--forcerun", "figure_dose")
    assert re.search(r"^total +2\n\nCtrl-C stops", output, re.MULTILINE)
    assert not [text for text in details if text in output]
    assert not [text for text in details if text not in made.logs()[-1]]


def test_an_unreadable_model_does_not_stop_the_others(made: Project, tmp_path: Path):
    """Nor does a directory that is a clone, with folders of its own."""
    project = made.copy(tmp_path / "project")
    for name in ("cut", "clone"):
        shutil.copytree(project.root / "tiny_model", project.root / name)
    for name in (".git", ".cache", "onnx.d"):
        (project.root / "clone" / name).mkdir()
        (project.root / "clone" / name / "HEAD").write_text("ref\n")
    weights = project.root / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    entry = "  - {{name: {0}, family: Tiny, source: {{kind: directory, path: {0}}}}}\n"
    others = "".join(entry.format(name) for name in ("cut", "clone")) + "  memory_gb"
    config = project.root / "config.yaml"
    config.write_text(config.read_text().replace("  memory_gb", others, 1))
    output = project.snakemake("pretrained")
    assert "Not measured: " in output
    assert "truncated" in output
    table = (project.root / "results/pretrained/tables/models.csv").read_text()
    for name in ("tiny", "clone"):
        assert re.search(f"^{name},Tiny,False,,LlamaForCausalLM,RMSNorm", table, re.MULTILINE)
    assert re.search("^cut,Tiny,.*cut/model.safetensors is truncated", table, re.MULTILINE)
    for targets in ((), ("pretrained",)):
        assert project.planned(*targets)["pretrained_probe"] == 1  # a failure is retried
