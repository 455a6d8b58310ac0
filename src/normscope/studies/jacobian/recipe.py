"""Parameters of the jobs that take norms apart and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Run``.
"""

from normscope.schema import PositiveInt, Seed, Strict


class JacobianProbe(Strict):
    """The models of a cell, one a seed, and on how many windows of text they are taken apart."""

    seeds: list[Seed]
    windows: PositiveInt


class JacobianTables(Strict):
    """The seeds of every cell, by its name.

    ``margin_sds`` standard deviations of the exact models' losses count as no cost.
    """

    cells: dict[str, list[Seed]]
    level: float
    margin_sds: float
