"""The device of the configuration reaches jobs and schedulers."""

import re

import pytest
from project import Project


@pytest.mark.parametrize(("device", "gpus"), [("cpu", "0"), ("cuda", "1")])
def test_jobs_with_models_get_the_device_and_request_a_gpu_for_cuda(
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
