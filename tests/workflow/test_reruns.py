"""Content decides what runs again, in both directions."""

import re
from pathlib import Path

from project import COMPARED, JACOBIAN, Project

PRINTED = {"frame", "summary", "page", "typeset", "latex", "manifest"}
PAPER = PRINTED | {"claims"}
ANALYSES = {"runs", "figure_loss", "figure_curves", "figure_gain"} | PAPER
DECISIVE = {f"figure_{name}" for name in ("notebook", "decisive", "slice", "factors", "sweep")}
PRETRAINED = {"figure_blocks", "figure_sensitivity"} | COMPARED
DEPTH = {f"figure_{name}" for name in ("signals", "spectra", "trainability")}
FIGURES = {"figure_loss", "figure_curves", "figure_gain", "figure_textbook"}
FIGURES |= DECISIVE | JACOBIAN | DEPTH | PRETRAINED


def test_nothing_is_left_to_do(made: Project):
    assert made.planned() == {}


def test_touching_every_file_reruns_nothing(made: Project):
    for path in made.root.rglob("*"):
        if path.is_file() and not {".git", ".snakemake"} & set(path.parts):
            path.touch()
    assert made.planned() == {}


def test_figure_style_redraws_and_nothing_else(made: Project):
    with made.edited("src/normscope/style.py", '"lines.linewidth": 1.0', '"lines.linewidth": 1.1'):
        planned = made.planned()
    assert set(planned) == FIGURES | PRINTED


def test_figure_size_in_the_configuration_redraws_and_nothing_else(made: Project):
    with made.edited("config.yaml", "width_mm: 170", "width_mm: 120"):
        planned = made.planned()
    assert set(planned) == FIGURES | PRINTED


def test_gain_module_measures_again_without_training(made: Project):
    with made.edited("src/normscope/residual.py", "return norms.log()", "return 1 * norms.log()"):
        planned = made.planned()
    assert (planned["stream"], planned["measure"]) == (3, 1)
    of_runs = {"stream", "gain", "figure_gain"}
    of_models = {"measure", "measured", "pretrained"} | PRETRAINED
    assert set(planned) == of_runs | of_models | PAPER


def test_model_module_trains_again(made: Project):
    with made.edited("src/normscope/model.py", "STD = 0.02 ", "STD = 0.021 "):
        planned = made.planned()
    assert (planned["train"], planned["ensemble"]) == (5, 1)
    assert "dataset" not in planned


def test_measurements_of_the_decisive_test_are_made_again_without_training(made: Project):
    with made.edited("src/normscope/spectrum.py", "x = x.double()", "x = 1 * x.double()"):
        planned = made.planned()
    assert planned["probe"] == 2
    assert set(planned) == {"probe", "decisive"} | DECISIVE | PAPER


def test_what_a_norm_removes_is_measured_again_without_training(made: Project):
    path = "src/normscope/jacobian/decomposition.py"
    with made.edited(path, "return g * radius", "return radius * g"):
        planned = made.planned()
    of_textbook = {"textbook", "figure_textbook"}  # which standardizes tokens the same way
    assert set(planned) == {"decompose", "jacobian"} | of_textbook | JACOBIAN | PAPER


def test_a_new_surrogate_trains_only_itself(made: Project):
    with made.edited(
        "config.yaml", "    - center_scale\n", "    - center_scale\n    - projected\n"
    ):
        planned = made.planned()
    assert planned["train"] == 1
    assert set(planned) == {"train", "jacobian"} | PAPER | JACOBIAN


def test_a_norm_that_is_computed_otherwise_trains_every_model_again(made: Project):
    with made.edited("src/normscope/norms.py", "self.alpha * x", "x * self.alpha"):
        planned = made.planned()
    assert (planned["train"], planned["recall"], planned["ensemble"]) == (5, 3, 1)


def test_a_new_seed_of_the_decisive_test_trains_only_itself(made: Project):
    old, new = "    seeds:\n    - 1\n    - 2\n  directions", "    seeds: [1, 2, 3]\n  directions"
    with made.edited("config.yaml", old, new):
        planned = made.planned()
    assert (planned["recall"], planned["probe"]) == (1, 1)  # of two cells
    paper = {"decisive"} | PAPER
    assert set(planned) == {"recall", "probe"} | DECISIVE | paper


def test_a_published_gain_remakes_what_compares_with_it(made: Project):
    with made.edited("data/reference_gains.csv", "0.804718018", "0.814718018"):
        planned = made.planned()
    assert set(planned) == {"pretrained"} | PAPER | COMPARED


def test_a_prompt_is_measured_again(made: Project):
    with made.edited("data/prompts.yaml", "currency used in Japan", "currency used in Peru"):
        planned = made.planned()
    assert set(planned) == {"measure", "measured", "pretrained"} | PRETRAINED | PAPER


def test_another_memory_for_weights_measures_nothing(made: Project):
    with made.edited("config.yaml", "memory_gb: 1", "memory_gb: 2"):
        planned = made.planned()
    assert "measured" in planned
    assert "measure" not in planned


def test_a_model_on_disk_that_changes_is_measured_again(made: Project):
    with made.edited("tiny_model/config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-05'):
        planned = made.planned()
    assert planned["measure"] == 1
    assert "train" not in planned


def test_another_order_of_sources_changes_nothing(made: Project):
    with made.edited("config.yaml", "sources:", "sources:\n  - {kind: path, path: elsewhere.txt}"):
        planned = made.planned()
    assert planned == {}


def test_a_new_seed_trains_only_itself(made: Project):
    with made.edited("config.yaml", "- 1\n  - 2", "- 1\n  - 2\n  - 3"):
        planned = made.planned()
    assert (planned["train"], planned["stream"]) == (1, 1)
    of_baseline = {"textbook", "figure_textbook"}
    assert set(planned) == {"train", "stream", "gain", "figure_beside"} | of_baseline | ANALYSES


def test_what_is_probed_by_block_is_probed_again_without_training(made: Project):
    with made.edited("src/normscope/depth/signals.py", "math.sqrt(x.numel())", "x.numel() ** 0.5"):
        planned = made.planned()
    paper = {"depth"} | PAPER
    assert set(planned) == {"descend", "figure_signals", "figure_spectra"} | paper | DEPTH


def test_another_depth_trains_only_itself(made: Project):
    with made.edited(
        "config.yaml", "    depths:\n    - 3\n    learning", "    depths: [3, 4]\n    learning"
    ):
        planned = made.planned()
    assert (planned["ensemble"], planned["descend"]) == (1, 1)
    assert set(planned) == {"ensemble", "descend", "depth"} | PAPER | DEPTH


def test_the_textbook_is_measured_again_alone(made: Project):
    with made.edited("src/normscope/textbook.py", "(1, 2, 4, 8, 16, 64,", "(1, 2, 5, 8, 16, 64,"):
        planned = made.planned()
    assert set(planned) == {"textbook", "figure_textbook"} | PAPER


def test_a_new_norm_is_one_row_and_one_word(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    last = '    "none": Arm('
    row = '    "half": Arm("Half affine", BA16, _token(center=True, bias=True, eps=1e-4)),\n'
    paper = project.root / "results" / "paper"
    with (
        project.edited("src/normscope/arms.py", last, row + last),
        project.edited("config.yaml", "- layernorm\n", "- layernorm\n  - half\n"),
    ):
        planned = project.planned()
        assert (planned["train"], planned["stream"]) == (2, 2)  # two seeds
        figures = ("loss", "curves", "gain")
        made_now = [f"results/paper/figures/{figure}.svg" for figure in figures]
        tables = ["results/tables/arms.csv", "results/tables/gain_by_arm.csv"]
        project.snakemake(*tables, *made_now)
        for figure in figures:
            assert "Half affine" in (paper / "figures" / f"{figure}.svg").read_text(), figure
            assert "half pre" in (paper / "figures" / f"{figure}.txt").read_text(), figure
        for table in ("runs", "curves", "arms", "gain", "gain_by_depth", "gain_by_arm"):
            path = project.root / "results" / "tables" / f"{table}.csv"
            assert re.search(r"^half,pre,", path.read_text(), re.MULTILINE), table
    assert "train" not in project.planned()


def test_another_threshold_judges_again_and_measures_nothing(made: Project):
    with made.edited("data/claims.yaml", "bound: 0.1 #", "bound: 0.2 #"):
        planned = made.planned()
    assert set(planned) == PAPER


def test_a_sentence_of_the_summary_changes_pages_and_no_number(made: Project):
    with made.edited("workflow/report/summary.md", "## Figures", "## All figures"):
        planned = made.planned()
    assert set(planned) == {"summary", "page", "typeset"}


def test_an_altered_table_reaches_all_that_reads_it(made: Project):
    """What is made from a table is never older than the table, by content."""
    with made.edited("results/tables/arms.csv", "layernorm", "layernorn"):
        assert {"figure_loss"} | PRINTED - {"manifest"} <= set(made.planned())
    assert made.planned() == {}
