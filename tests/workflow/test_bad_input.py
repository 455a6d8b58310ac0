"""A wrong configuration stops before any job starts, and names its way out."""

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from project import Project

FIGURES = (
    *("loss", "curves", "gain", "notebook", "decisive", "slice", "factors"),
    "jacobian",
)


PROBLEMS = [  # an edit, and what is said of it
    ("  steps: 60", "  stepps: 60", ["training.stepps", "did you mean steps?", "training.steps"]),
    ("  batch_size: 8", "  batch_size: many", ["training.batch_size", "integer", "'many'"]),
    ("- layernorm\n", "- layernrom\n", ["layernrom", "did you mean layernorm"]),
    ("- 1\n  - 2", "- 1\n  - 1", ["runs.0.seeds", "given twice: 1"]),
    ("  n_head: 2", "  n_head: 3", ["n_embd (32)", "n_head (3)"]),
]


@pytest.fixture(scope="module")
def refusal(made: Project) -> str:
    """What is said of a configuration with all the problems."""
    with ExitStack() as edits:
        for old, new, _ in PROBLEMS:
            edits.enter_context(made.edited("config.yaml", old, new))
        return made.snakemake(ok=False)


@pytest.mark.parametrize("words", [words for _, _, words in PROBLEMS])
def test_wrong_configuration_names_each_problem(refusal: str, words: list[str]):
    lines = [line for line in refusal.splitlines() if words[0] in line]
    assert lines, refusal
    for word in words:
        assert word in refusal


def test_wrong_configuration_starts_nothing(refusal: str):
    assert f"the configuration has {len(PROBLEMS) + 1} problem(s)" in refusal  # no training.steps
    assert "Traceback" not in refusal
    assert "Job stats" not in refusal


WRONG_ROW = '    Row("rmsnorm", "Again", ZS19, _token(gian=True)),\n'
WRONG_STATEMENT = ("      measure: effective_rank_query\n", "      measure: arm\n")


def test_wrong_rows_of_the_registry_are_named(made: Project):
    last = '    Row("none",'
    with made.edited("src/normscope/nn/arms.py", last, WRONG_ROW + last):
        output = made.snakemake("-n", ok=False)
    assert "'rmsnorm': unknown factor 'gian'; did you mean gain?" in output
    assert "given twice: rmsnorm" in output
    assert "Traceback" not in output
    assert "Job stats" not in output


def test_a_statement_of_text_is_named(made: Project):
    with made.edited("data/claims.yaml", *WRONG_STATEMENT):
        output = made.snakemake("-n", ok=False)
    assert "claims.none_collapses.contrast.measure: arm is text, and a number is needed" in output
    assert "Traceback" not in output
    assert "Job stats" not in output


def test_unknown_run_names_those_that_exist(made: Project):
    output = made.snakemake(
        "results/main/models/nanogpt-layernorm-pre-0.001-77/metrics.csv", ok=False
    )
    assert "nanogpt-layernorm-pre-0.001-77 is not in the configuration" in output
    assert "nanogpt-layernorm-pre-0.001-1" in output


def test_no_source_names_each_one_tried(made: Project):
    end = (made.root / "corpus.txt").read_text()[-100:]
    with made.edited("corpus.txt", end, ""):
        output = made.snakemake("--forcerun", "dataset", ok=False)
    assert "corpus.txt: 1" in output
    assert "truncated or altered" in output
    assert "Traceback" not in output
    made.snakemake("results/dataset/train.bin")
    assert made.planned() == {}


def test_divergence_is_a_result(diverged: Project):
    summary = (diverged.root / "results/paper/summary.md").read_text()
    assert "Of 2 models\n2 diverged and 2 failed." in summary
    # ln 9, of as many characters
    row = "| LayerNorm, pre | 2 | 1 | 0.001 | 2 | 2.197 | [2.197, 2.197] | – | – | baseline |"
    assert row in summary
    assert "| LayerNorm | 0.01 | 0, 2 diverged | – |" in summary
    # its exact twin knows as little
    (cost,) = re.findall(r"\| center_scale \| all \| 1 \| 1 \| (.+) \|", summary)
    assert cost.split(" | ")[2:] == ["+0.000", "–", "2.197", "–"]
    for figure in FIGURES:
        caption = diverged.root / "results/paper/figures" / f"{figure}.txt"
        assert "Diverged, and " in caption.read_text(), figure


def test_a_damaged_model_is_made_again(made: Project):
    """Of the same bytes, so that nothing that reads it is to be made again."""
    weights = "results/recall/models/recall-layernorm-0.01-1/models.safetensors"
    stored = (made.root / weights).resolve()
    whole = stored.read_bytes()
    stored.chmod(0o644)
    stored.write_bytes(whole[:100])
    output = made.snakemake(weights)
    assert f"{stored} is not what its job wrote: the entry is removed, to be made again" in output
    assert (made.root / weights).read_bytes() == whole
    assert made.planned() == {}


def test_a_model_that_cannot_be_had_does_not_stop_the_others(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    shutil.copytree(project.root / "tiny_model", project.root / "cut")
    weights = project.root / "cut" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    other = "  - {name: cut, family: Tiny, source: {kind: directory, path: cut}}\n  memory_gb"
    config = project.root / "config.yaml"
    config.write_text(config.read_text().replace("  memory_gb", other, 1))
    output = project.snakemake("pretrained")
    assert "Not measured: " in output
    assert "truncated" in output
    table = (project.root / "results/pretrained/tables/models.csv").read_text()
    assert re.search("^tiny,Tiny,False,,LlamaForCausalLM,RMSNorm", table, re.MULTILINE)
    assert re.search("^cut,Tiny,.*cut/model.safetensors is truncated", table, re.MULTILINE)
    assert project.planned()["pretrained_probe"] == 1  # nothing of a failure stays
    weights.write_bytes(whole)
    project.snakemake("pretrained")
    table = (project.root / "results/pretrained/tables/models.csv").read_text()
    assert re.search("^cut,Tiny,False,,LlamaForCausalLM,RMSNorm", table, re.MULTILINE)


def test_other_packages_than_the_pins_make_nothing(made: Project):
    """What they made would be kept under the name of the pinned ones."""
    with made.edited("constraints.txt", "\npandas==", "\npandas==0."):
        output = made.snakemake("results/main/tables/runs.csv", ok=False)
    assert re.search(r"installed are pandas [\d.]+ in place of 0\.[\d.]+: run `make tools`", output)
    assert "Traceback" not in output
    assert made.planned() == {}


def test_a_store_that_others_may_share_is_not_pruned(made: Project, tmp_path: Path):
    elsewhere = ("env", f"SNAKEMAKE_OUTPUT_CACHE={tmp_path}")
    output = made.run(*elsewhere, "python", "scripts/prune.py", ok=False)
    assert "which other projects may share" in output


def test_a_store_that_cannot_be_made_is_said_at_the_start(made: Project, tmp_path: Path):
    (tmp_path / "store").touch()
    elsewhere = ("--directory", str(tmp_path), "--configfile", str(made.root / "config.yaml"))
    output = made.snakemake("-n", *elsewhere, ok=False)
    assert "the store cannot be made" in output
    assert "SNAKEMAKE_OUTPUT_CACHE=FOLDER" in output


def test_a_model_s_directory_may_be_a_clone(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    for name in (".git", ".cache", "onnx.d"):
        (project.root / "tiny_model" / name).mkdir()
        (project.root / "tiny_model" / name / "HEAD").write_text("ref\n")
    shutil.rmtree(project.root / "store")
    project.snakemake("results/pretrained/probes/tiny/model.json")
    assert (project.root / "results/pretrained/probes/tiny/model.json").resolve().is_file()
