"""The textbook study: its models are the main study's baseline. No torch."""

from typing import ClassVar

from pydantic import Field

from normscope.ledger.vocabulary import SHARE, Vocabulary
from normscope.schema import PositiveInt
from normscope.studies.study import Settings, Study
from normscope.studies.textbook.recipe import TextbookTables

VECTORS = ("value", "normalized", "outlier", "outlier_normalized")  # rows of wild_summary.csv


class Textbook(Study):
    """LayerNorm and BatchNorm as a tutorial builds them, beside norms of trained models."""

    TABLES: ClassVar = "scratch epsilon affine sharing batches wild wild_summary undo".split()
    TRAINS: ClassVar = False
    MODELS_OF: ClassVar = "main"

    windows: PositiveInt = Field(description="validation windows that trained norms are seen on")

    def vocabulary(self) -> Vocabulary:
        scratch = "d ratio theory error_forward error_backward error_ours finite".split()
        wild = "vector mean std std_unbiased largest share bound".split()
        undo = "sd_ln_scale sd_mean r2 theory".split()
        return Vocabulary(
            columns={"scratch": scratch, "wild_summary": wild, "undo": undo},
            values={"vector": VECTORS, "finite": (False, True)},
            ranges={"share": SHARE, "r2": SHARE},
        )

    def tabulated(self, settings: Settings) -> list[str]:
        files = ("config.json", "models.safetensors")
        return [f"main/models/{name}/{file}" for name in settings.baseline for file in files]

    def tabulation(self, settings: Settings) -> TextbookTables:
        return TextbookTables(models=settings.baseline, windows=self.windows, level=settings.level)
