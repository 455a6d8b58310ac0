"""Projects that ran undisturbed, which tests copy, and an S3 server."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ENGINES, IDENTITY, Project, fresh, once
from running import TARGETS, checkpoint_every


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose whole workflow ran. Tests that edit it restore it."""
    return once(tmp_path_factory, "made", lambda root: fresh(root).snakemake())


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with models, tables and a figure; tests use copies."""

    def make(root: Path) -> None:
        project = fresh(root)
        checkpoint_every(project, 5)
        project.run("git", *IDENTITY, "commit", "--all", "--quiet", "--message", "checkpoints")
        project.snakemake(*TARGETS)

    return once(tmp_path_factory, "modelled", make)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks S3."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    os.environ.update(keys | {"AWS_DEFAULT_REGION": "us-east-1"})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as said:
        command = [ENGINES / "moto_server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        while not _answers(port):
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
