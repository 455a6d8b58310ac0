"""Branches share a store: nothing is trained twice, and no result is stale."""

import shutil
from pathlib import Path

import yaml
from cases import TARGETS
from project import IDENTITY, Project


def trained(project: Project) -> dict[str, int]:
    """Jobs that trained in this folder, where a training writes its timing, and when."""
    timings = (project.root / "results/benchmarks/main_train").glob("*.tsv")
    return {path.stem: path.stat().st_mtime_ns for path in timings}


def copied(modelled: Project, at: Path) -> Project:
    """A copy in which no training has run."""
    project = modelled.copy(at / "project")
    shutil.rmtree(project.root / "results/benchmarks")
    return project


def test_branches_with_other_seeds_are_never_stale_and_train_once(
    modelled: Project, tmp_path: Path
):
    project = copied(modelled, tmp_path)
    path = project.root / "config.yaml"
    config = yaml.safe_load(path.read_text())
    run = config["main"]["runs"][0]
    run["seeds"] = [7 if seed == 1 else seed for seed in run["seeds"]]
    project.run("git", "checkout", "--quiet", "-b", "seeds")
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    project.run("git", *IDENTITY, "commit", "--quiet", "--all", "--message", "another seed")
    drawn, once = {}, {}
    for branch in ("seeds", "main", "seeds"):
        project.run("git", "checkout", "--quiet", branch)
        project.snakemake(*TARGETS)
        assert project.planned(*TARGETS) == {}
        figure = (project.root / "results/paper/figures/loss.svg").read_bytes()
        once = once or trained(project)
        assert drawn.setdefault(branch, figure) == figure
        assert trained(project) == once
    assert drawn["seeds"] != drawn["main"]
    assert once
    assert all(name.endswith(("-2", "-7")) for name in once)  # jobs are named by their least seed


def test_half_a_store_trains_what_is_missing_alone(modelled: Project, tmp_path: Path):
    project = copied(modelled, tmp_path)
    first, second, *_ = sorted((project.root / "results/main/models").iterdir())
    for name in ("metrics.csv", "SHA256SUMS"):  # half an entry
        (first / name).resolve().unlink()
    for link in second.iterdir():  # a whole one
        link.resolve().unlink()
    project.snakemake(*(f"results/main/models/{path.name}/metrics.csv" for path in (first, second)))
    assert sorted(trained(project)) == [first.name, second.name]
    assert project.digests("store") == modelled.digests("store")
