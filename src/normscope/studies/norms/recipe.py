"""Parameters of the job that makes the tables of the study of norms. No torch."""

from normscope.studies.cells import Cell, ModelTables


class NormsTables(ModelTables):
    """What the tables are made from.

    Args:
        arm, placement: what the others of a protocol are compared with.
        rates: the mean loss of the pilot models of a cell by its learning rate; None if one of them
            diverged.
    """

    jobs: dict[str, Cell]
    arm: str
    placement: str
    rates: list[tuple[Cell, float | None]]
