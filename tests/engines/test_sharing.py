"""Clones and branches share a store: nothing is trained twice, and no result is stale."""

import yaml
from project import IDENTITY, Project

KEPT = (
    *("main_train", "recall_train", "jacobian_train", "depth_train", "literature_train"),
    "pretrained_probe",
)


def trained(project: Project) -> list[str]:
    """Jobs that trained in this folder, where a training writes its timing."""
    return sorted(
        p.stem
        for p in (project.root / "results/benchmarks").rglob("*/*.tsv")
        if p.parent.name in KEPT
    )


def reseeded(project: Project, old: str, new: str) -> None:
    """Another seed for the first job of the configuration."""
    path = project.root / "config.yaml"
    config = yaml.safe_load(path.read_text())
    run = config["main"]["runs"][0]
    seeds = run["seeds"]
    run["seeds"] = [int(new) if seed == int(old) else seed for seed in seeds]
    assert run["seeds"] != seeds
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def test_branches_with_other_seeds_are_never_stale_and_train_once(clone: Project):
    figure = "results/paper/figures/loss.svg"
    drawn = {}

    def switch(branch: str) -> bytes:
        clone.run("git", "checkout", "--quiet", branch)
        clone.run("dvc", "checkout")
        clone.snakemake(figure)
        assert clone.planned(figure) == {}
        return (clone.root / figure).read_bytes()

    clone.snakemake(figure)
    drawn["main"] = (clone.root / figure).read_bytes()
    clone.run("git", "checkout", "--quiet", "-b", "seeds")
    reseeded(clone, "1", "7")
    clone.run("dvc", "repro", "runs")
    clone.run("git", *IDENTITY, "commit", "--quiet", "--all", "--message", "another seed")
    clone.snakemake(figure)
    drawn["seeds"] = (clone.root / figure).read_bytes()
    assert drawn["seeds"] != drawn["main"]
    once = trained(clone)
    assert once
    assert all(name.endswith(("-2", "-7")) for name in once)  # jobs are named by their least seed
    times = {p: p.stat().st_mtime_ns for p in (clone.root / "results/benchmarks").rglob("*.tsv")}
    for branch in ("main", "seeds", "main", "seeds"):
        assert switch(branch) == drawn[branch], branch
    # git alone, without dvc: the store still has what the other branch asks for
    clone.run("git", "checkout", "--quiet", "main")
    clone.snakemake(figure)
    assert trained(clone) == once
    assert (clone.root / figure).read_bytes() == drawn["main"]
    for path, time in times.items():
        if path.parent.name in KEPT:
            assert path.stat().st_mtime_ns == time, f"{path} was trained twice"


def test_half_a_pull_trains_what_is_missing_alone(clone: Project, origin: Project):
    clone.snakemake("models")
    first, second, *_ = sorted((clone.root / "results/main/models").iterdir())
    for name in ("metrics.csv", "SHA256SUMS"):  # half an entry
        (first / name).resolve().unlink()
    for link in second.iterdir():  # a whole one
        link.resolve().unlink()
    clone.snakemake("models")
    assert trained(clone) == [first.name, second.name]
    assert clone.digests("store") == origin.digests("store")
