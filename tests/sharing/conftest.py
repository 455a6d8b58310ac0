"""An origin whose paper is made, a real S3 server on the loopback, and clones."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from project import ENGINES, IDENTITY, Project, fresh

BUCKET = "normscope"


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose paper `dvc repro` has made and published, committed."""
    project = fresh(tmp_path_factory.mktemp("origin") / "project")
    project.run("dvc", "repro")
    project.run("git", "add", "--all")
    project.run("git", *IDENTITY, "commit", "--quiet", "--message", "made")
    return project


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks S3, with one empty bucket."""
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
        address = f"http://127.0.0.1:{port}"
        boto3.client("s3", endpoint_url=address).create_bucket(Bucket=BUCKET)
        yield address
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session", params=["directory", "s3"])
def remote(
    request: pytest.FixtureRequest, origin: Project, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Settings of a DVC remote to which the origin was pushed."""
    if request.param == "s3":
        settings = {"url": f"s3://{BUCKET}/store", "endpointurl": request.getfixturevalue("s3")}
    else:
        settings = {"url": str(tmp_path_factory.mktemp("remote"))}
    share(origin, settings)
    origin.run("dvc", "push")
    return settings


def share(project: Project, settings: dict[str, str]) -> None:
    """Make a remote the default one of a project."""
    project.run("dvc", "remote", "add", "--force", "--local", "--default", "r", settings["url"])
    for key, value in settings.items():
        project.run("dvc", "remote", "modify", "--local", "r", key, value)


@pytest.fixture
def clone(origin: Project, remote: dict[str, str], tmp_path: Path) -> Project:
    """As a collaborator has it: cloned by git, pulled by DVC."""
    origin.run("git", "clone", "--quiet", str(origin.root), str(tmp_path / "clone"))
    project = Project(tmp_path / "clone")
    share(project, remote)
    project.run("dvc", "pull")
    return project


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
