"""What computes models and measurements: the configuration says, jobs and schedulers are told."""

import re
from pathlib import Path

import pytest
from project import Project


@pytest.mark.parametrize(("device", "gpus"), [("cpu", "0"), ("cuda", "1")])
def test_what_trains_or_measures_models_asks_for_a_gpu_where_that_computes(
    made: Project, device: str, gpus: str
):
    plan = made.snakemake("-n", "-p", "--forceall", "--config", f"device={device}")
    jobs = re.findall(r"^ *(?:local)?rule (\w+):\n((?: +.+\n)+)", plan, re.MULTILINE)
    asked = {
        rule: dict(re.findall(r"(\w+)=([^,\s]+)", resources)).get("gpu") for rule, resources in jobs
    }
    studies = ("main", "recall", "jacobian", "depth")
    models = {f"{study}_{stage}" for study in studies for stage in ("train", "probe")}
    models |= {"pretrained_probe"}
    assert {rule for rule, gpu in asked.items() if gpu is not None} == models
    assert {asked[rule] for rule in models} == {gpus}
    recipes = re.findall(r'"device":"(\w+)"', plan)
    assert set(recipes) == {device}
    assert len(recipes) == sum(rule in models for rule, _ in jobs)


def test_a_gpu_that_is_not_there_is_one_error_with_the_way_out(made: Project, tmp_path: Path):
    """Of the job, which a machine without GPUs may have submitted to one that has."""
    project = made.copy(tmp_path / "project")
    command = (
        "snakemake",
        "--cores",
        "2",
        "results/main/models/nanogpt-none-none-0.001-1/metrics.csv",
    )
    without = ("env", "CUDA_VISIBLE_DEVICES=")  # on a machine with a GPU too
    said = project.run(*without, *command, "--config", "device=cuda", ok=False)
    assert re.search(r"^error: device cuda: torch .*: set device: cpu or auto", said, re.MULTILINE)
    assert "Traceback" not in said
    before = project.digests("store")
    project.snakemake("models")  # and nothing is lost: on the CPU all is in the store
    assert project.digests("store") == before
