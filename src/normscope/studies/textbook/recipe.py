"""Parameters of the textbook study's one job. No torch."""

from normscope.schema import PositiveInt, Strict


class TextbookTables(Strict):
    """Names of the trained models whose norms are looked at, and on how many windows."""

    models: list[str]
    windows: PositiveInt
    level: float
