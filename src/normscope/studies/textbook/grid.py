"""The textbook study: its models are the main study's baseline. No torch."""

from typing import ClassVar

from pydantic import Field

from normscope.schema import PositiveInt, Strict
from normscope.studies.study import Settings, Stages, Study
from normscope.studies.textbook import tables


class TextbookTables(Strict):
    """Names of the trained models whose norms are measured, and on how many windows."""

    models: list[str]
    windows: PositiveInt
    level: float


class Textbook(Study):
    """LayerNorm and BatchNorm as a tutorial builds them, compared with norms of trained models."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(models_of="main")

    windows: PositiveInt = Field(description="validation windows that trained norms are seen on")

    def table_inputs(self, settings: Settings) -> list[str]:
        files = ("config.json", "models.safetensors")
        return [f"main/models/{name}/{file}" for name in settings.baseline for file in files]

    def tabulation(self, settings: Settings) -> TextbookTables:
        return TextbookTables(models=settings.baseline, windows=self.windows, level=settings.level)
