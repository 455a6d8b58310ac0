"""The figures of depth, drawn of tables in which much or little was measured."""

from pathlib import Path

import pandas as pd
import processes
import pytest
from depth_evidence import LEVEL, UNIGRAM

from normscope.io.csvfile import write_csv
from normscope.studies.depth.grid import Shape
from normscope.studies.depth.measures import MEASURES, RELATIVE
from normscope.studies.depth.tables import by_block, trainability

ROOT = Path(__file__).parents[2]
SHAPES = [
    Shape._make((arm, placement, residual, "gpt2", depth))
    for arm, placement in (("layernorm", "pre"), ("layernorm", "post"), ("none", "none"))
    for residual in (True, False)
    for depth in (2, 5)
]


def blocks(seeds: int, shapes: list[Shape], states: tuple[str, ...]) -> pd.DataFrame:
    """Sizes that differ by seed; without residual connections they are lost in depth."""
    rows = []
    for state in states:
        for shape in shapes:
            for seed in range(seeds):
                for block in range(shape.depth + 1):
                    size = (1 + 0.1 * seed) * (1.1 if shape.residual else 1e-30) ** block
                    row = shape._asdict() | {"state": state, "seed": seed, "block": block}
                    row |= dict.fromkeys(MEASURES, size) | {"angle_attention": 80.0 + seed}
                    rows.append(row | {"angle_mlp": 95.0, "smallest": 0.0})
    return pd.DataFrame(rows, columns=[*Shape._fields, "state", "seed", "block", *MEASURES])


def losses(seeds: int, shapes: list[Shape], *, diverged: bool = False) -> pd.DataFrame:
    rows = [
        {**shape._asdict(), "learning_rate": rate, "warmup_steps": warm_up, "seed": seed}
        | {"val_loss": None if diverged else 2.5 + 0.1 * seed, "unigram": UNIGRAM}
        | {"diverged_at": 3 if diverged else None}
        for shape in shapes
        for rate in (0.001, 0.003)
        for warm_up in (0, 5)
        for seed in range(seeds)
    ]
    columns = ["learning_rate", "warmup_steps", "seed", "val_loss", "unigram", "diverged_at"]
    return pd.DataFrame(rows, columns=[*Shape._fields, *columns]).astype({"val_loss": float})


def drawn(place: Path, name: str, table: str, of: pd.DataFrame) -> str:
    """The caption, once the figure is there."""
    write_csv(place / f"{table}.csv", of)
    flags = {table: place / f"{table}.csv", "out": place / name, "width_mm": 170, "font_pt": 8}
    flags |= {"caption": ROOT / f"workflow/report/{name}.rst", "level": LEVEL}
    processes.Script(f"figure_{name}", processes.flags(flags), place / "log").succeed()
    for suffix in (".pdf", ".svg"):
        assert (place / f"{name}{suffix}").stat().st_size > 5000
    return (place / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", ["signals", "spectra"])
@pytest.mark.parametrize(
    ("of", "said"),
    [
        ((6, SHAPES, ("start", "trained")), "n: 6 models (seeds) behind every mean"),
        ((1, SHAPES, ("start",)), "n: 1 model (seeds) behind every mean"),
        ((2, SHAPES[:1], ("trained",)), None),
        ((2, [Shape("rmsnorm", "pre", True, "gpt2", 3)], ("start",)), "No model was measured."),
    ],
)
def test_blocks_are_drawn_of_many_models_and_of_few(tmp_path, name, of, said):
    table = by_block(blocks(*of), LEVEL)
    assert RELATIVE in set(table["measure"])
    caption = drawn(tmp_path, name, "by_block", table)
    if said is not None:
        assert said in caption


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (losses(6, SHAPES), "n: 6 models (seeds) behind every mean"),
        (losses(1, SHAPES[:1]), "n: 1 model (seeds) behind every mean"),
        (losses(2, SHAPES[:2], diverged=True), "16 diverged."),
        (losses(2, []), "No model was measured."),
    ],
)
def test_losses_are_drawn_of_many_models_and_of_none(tmp_path, table, said):
    assert said in drawn(tmp_path, "trainability", "trainability", trainability(table, LEVEL))
