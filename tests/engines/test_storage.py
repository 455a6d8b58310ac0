"""Results in a storage and jobs in separate directories, as in a cloud, on one machine."""

import os
import signal
import time
from pathlib import Path

import boto3
import pytest
import yaml
from project import ENGINES, Project, fresh

LONG = "nanogpt-layernorm-pre-0.001-1"
MODEL = tuple(
    f"results/main/models/{LONG}/{name}" for name in ("models.safetensors", "metrics.csv")
)
TABLES = ("results/textbook/tables/batches.csv", "results/textbook/tables/wild.csv")
NODE = """#!/bin/sh
cd "$(mktemp -d -p {nodes})" && exec env -i HOME="$HOME" PATH={path} sh "$1"
"""


class Away(Project):
    """A project whose jobs share only a storage and one folder."""

    def __init__(self, root: Path, url: str, endpoint: str) -> None:
        super().__init__(root)
        self.url, self.endpoint, self.run_name = url, endpoint, "first"
        self.shared, nodes = root.parent / "shared", root.parent / "nodes"
        nodes.mkdir()
        self.node = root.parent / "node"
        self.node.write_text(NODE.format(nodes=nodes, path=f"{ENGINES}:{os.defpath}"))
        self.node.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        variables = {"NORMSCOPE_SHARED": str(self.shared)}
        variables["SNAKEMAKE_OUTPUT_CACHE"] = f"{self.url}/store"
        keys = {"ACCESS_KEY": "test", "SECRET_KEY": "test", "ENDPOINT_URL": self.endpoint}
        variables |= {f"SNAKEMAKE_STORAGE_S3_{key}": value for key, value in keys.items()}
        return super().env | variables

    def command(self, *targets: str) -> tuple[str, ...]:
        return (
            *("snakemake", *targets, "--profile", "profiles/storage", "--jobs", "2"),
            *("--executor", "cluster-sync", "--cluster-sync-submit-cmd", str(self.node)),
            *("--default-storage-provider", "s3"),
            *("--default-storage-prefix", f"{self.url}/{self.run_name}"),
        )

    def stored(self, path: str) -> bytes:
        """A file as the storage has it."""
        where = f"{self.url}/{self.run_name}/{path}"
        bucket, _, key = where.removeprefix("s3://").partition("/")
        client = boto3.client("s3", endpoint_url=self.endpoint)
        return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def small(root: Path) -> Project:
    """A project in which one training of the tables takes some seconds."""
    project = fresh(root)
    path = project.root / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["main"]["protocols"]["nanogpt"]["training"] |= {"steps": 2000, "eval_every": 1000}
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return project


@pytest.fixture
def away(s3: str, tmp_path: Path) -> Away:
    boto3.client("s3", endpoint_url=s3).create_bucket(Bucket="runs")
    return Away(small(tmp_path / "project").root, "s3://runs", s3)


def test_a_killed_job_continues_elsewhere_and_the_store_serves_the_next(away: Away, tmp_path: Path):
    checkpoints = away.shared / "main/checkpoints" / LONG
    first = away.start(*away.command(*TABLES))
    while not any(checkpoints.glob("*/step-*.ckpt")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    os.kill(int((checkpoints / "lock").read_text()), signal.SIGKILL)
    output = "".join(first.communicate())
    assert first.returncode == 0, output
    assert b"continuing from step" in away.stored(f"results/logs/main_train/{LONG}.log")

    ordinary = small(tmp_path / "ordinary")
    ordinary.snakemake(*TABLES)
    for path in (*TABLES, *MODEL):
        assert away.stored(path) == (ordinary.root / path).read_bytes(), path

    # into another place of the storage: from the store, without a training
    for path in checkpoints.glob("*/step-*.ckpt"):
        path.unlink()
    (away.root / "results").unlink()
    away.run_name = "second"
    away.run(*away.command(MODEL[1]))
    assert not any(checkpoints.glob("*/step-*.ckpt"))
    assert away.stored(MODEL[1]) == (ordinary.root / MODEL[1]).read_bytes()
