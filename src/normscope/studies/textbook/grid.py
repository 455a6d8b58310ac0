"""The textbook study: its models are the main study's baseline. No torch."""

from typing import ClassVar

from pydantic import Field

from normscope.schema import PositiveInt
from normscope.studies.study import Settings, Study
from normscope.studies.textbook.recipe import TextbookTables


class Textbook(Study):
    """LayerNorm and BatchNorm as a tutorial builds them, beside norms of trained models."""

    TABLES: ClassVar = "scratch epsilon affine sharing batches wild wild_summary undo".split()

    windows: PositiveInt = Field(description="validation windows that trained norms are seen on")

    def tabulation(self, settings: Settings) -> TextbookTables:
        return TextbookTables(models=settings.baseline, windows=self.windows, level=settings.level)
