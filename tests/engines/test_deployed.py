"""Deployed by snakedeploy from a hosted repository, which git is told to find on this disk."""

import pytest
from project import IDENTITY, Project


@pytest.fixture
def hosted(modelled: Project, monkeypatch: pytest.MonkeyPatch, tmp_path) -> Project:
    """The modelled project as https://github.com/org/project, with a tag."""
    modelled.run("git", *IDENTITY, "tag", "--force", "v1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{modelled.root.parent}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/org/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # of Snakemake's clones
    return modelled


def test_a_tag_is_deployed_and_makes_the_same_tables(hosted: Project, tmp_path):
    user = Project(tmp_path / "user")
    hosted.run(
        *("snakedeploy", "deploy-workflow", "https://github.com/org/project", str(user.root)),
        *("--tag", "v1"),
    )
    for name in ("corpus.txt", "tiny_model", "other_model"):
        (user.root / name).symlink_to(hosted.root / name)
    # without a target all is made
    assert user.planned().keys() == hosted.planned("--forceall").keys() | {"everything"}
    user.snakemake("main")
    assert user.digests("results/main/tables") == hosted.digests("results/main/tables")
    (user.root / "config/config.yaml").write_text("depth: {training: {stesp: 1}}\n")
    assert "did you mean steps?" in user.snakemake("-n", ok=False)
