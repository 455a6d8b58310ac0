"""A DVC remote whose files were changed: with `verify`, none of them arrives."""

import shutil
from pathlib import Path

from project import Project


def test_a_file_that_was_changed_in_a_remote_is_not_fetched(tmp_path: Path):
    remote, project = tmp_path / "remote", Project(tmp_path / "project")
    project.root.mkdir()
    project.run("git", "init", "--quiet")
    project.run("dvc", "init", "--quiet")
    file = project.root / "model"
    file.write_text("as trained")
    project.run("dvc", "add", "--quiet", "model")
    project.run("dvc", "remote", "add", "--quiet", "--default", "shared", str(remote))
    project.run("dvc", "remote", "modify", "shared", "verify", "true")
    project.run("dvc", "push", "--quiet")
    shutil.rmtree(project.root / ".dvc/cache")
    file.unlink()
    (stored,) = (path for path in remote.rglob("*") if path.is_file())
    stored.chmod(0o644)
    stored.write_text("as altered")
    stored.chmod(0o444)  # DVC looks again at what is writable, whatever it is told
    project.run("dvc", "pull", ok=False)
    assert not file.exists()
