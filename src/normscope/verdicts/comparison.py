"""The key ``contrast`` of an entry: which trained models are compared."""

import itertools
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from normscope.schema import Distinct, Some, Strict
from normscope.verdicts.expression import Check, Measure, columns_in
from normscope.verdicts.vocabulary import Value
from normscope.verdicts.wording import check_fields

Column = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]
SEED = "seed"  # the column by which rows are paired and counted
Columns = Annotated[list[Column], Distinct]
Cells = dict[Column, Value | Annotated[list[Value], Some, Distinct]]
NUMBERS = dict.fromkeys(("first", "second", "effect", "interval", "n"), "–")  # of a sentence


class At(Strict):
    """The value of a column at which each case is tested; both sides must have it."""

    column: Column
    pick: Literal["greatest", "least"]
    at_least: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None, description="smaller values are ignored"
    )


class Best(Strict):
    """The setting of each side: the one with the least loss of pilot models.

    Without pilot models, it is for each seed the one with the lowest mean over the *other* seeds.
    No seed then takes part in choosing the setting at which it is tested, unless no other seed has
    all settings, but the test exceeds its level. A setting at which the measure is unknown comes
    last.
    """

    columns: Annotated[Columns, Some] = Field(description="the columns that make up a setting")
    by: Measure = Field(description="the measure to minimize, without pilot models")


class Need(Strict):
    """A condition on models without which the case is undecided."""

    check: Check = Field(description="a comparison of means over seeds, such as accuracy >= 0.9")
    where: Literal["both", "either"] | Cells = Field(
        default="both",
        description="both sides, either side, or other cells, given by what differs from `cells`; "
        "each value is checked separately",
    )
    why: Annotated[str, Some] = Field(description="words for a case that does not meet it")


class Contrast(Strict):
    """A measure of some cells, alone, or compared with that of other cells and paired by seed.

    In ``cells``, ``less`` and ``over`` a column has a value or a list of values. A name of the
    study (``protocol: corrected``) stands for the cells that the configuration gives it. ``less``
    and ``over`` give what differs from ``cells``; a list there makes one case per value.
    """

    table: str = Field(
        pattern=r"^[a-z]+\.[a-z_0-9]+$", description="study.table, with one row per model"
    )
    measure: Measure = Field(description="a column, or arithmetic of columns: r_radial * d")
    cells: Cells = Field(description="the models, by values of columns")
    less: Cells | None = Field(
        default=None, description="what differs on the other side, which is subtracted"
    )
    over: Cells | None = Field(
        default=None, description="what differs on the other side, which divides"
    )
    each: Columns = Field(default=[], description="columns that make one case per value")
    at: At | None = None
    best: Best | None = None
    needs: list[Need] = Field(default=[])
    as_published: Cells | None = Field(
        default=None,
        description="what differs from `cells` under the published protocol, which gets a separate "
        "verdict from its means",
    )
    sentence: str | None = Field(
        default=None,
        description="a case in words, with the fields {first}, {second} (means), {effect}, "
        "{interval} and {n}",
    )

    @property
    def other(self) -> Cells | None:
        """What differs on the second side; None without a second side."""
        return self.less if self.over is None else self.over

    @model_validator(mode="after")
    def _has_two_sides_at_most(self) -> Self:
        if self.less is not None and self.over is not None:
            raise ValueError("less and over: give one")
        if len(self.partners) > 1:
            raise ValueError(
                f"{' and '.join(self.partners)}: only one column may name several values"
            )
        if self.sentence is not None:
            second = {"second": None} if self.other is None else {}
            try:
                check_fields(self.sentence, NUMBERS | second)
            except ValueError as e:
                raise ValueError(f"sentence: {e}") from None
        return self

    @property
    def sides(self) -> list[Cells]:
        """The cells of each side; lists stand for several values.

        With ``best``, settings are also chosen among the models of the published protocol.
        """
        every = [self.cells]
        if self.best and self.as_published:
            every.append(self.cells | self.as_published)
        return every if self.other is None else [*every, *(cells | self.other for cells in every)]

    @property
    def partners(self) -> list[str]:
        """The columns that list several values on the second side, each of which is a case."""
        return [k for k, v in (self.other or {}).items() if isinstance(v, list)]

    @property
    def distinguished_by(self) -> list[str]:
        """The columns whose values distinguish cases."""
        return [*self.partners, *self.each, *([self.at.column] if self.at else [])]

    @property
    def numbers(self) -> list[str]:
        """The keys of ``columns`` whose columns must be numbers."""
        return [key for key in self.columns() if key not in ("each", "best.columns")]

    def columns(self) -> dict[str, list[str]]:
        """The columns of the table that each key names, except those of cells."""
        keys = {"measure": columns_in(self.measure), "each": self.each}
        if self.at:
            keys["at.column"] = [self.at.column]
        if self.best:
            keys |= {"best.columns": self.best.columns, "best.by": columns_in(self.best.by)}
        for i, need in enumerate(self.needs):
            keys[f"needs.{i}.check"] = columns_in(need.check)
        return keys

    def without(self, columns: Collection[str]) -> dict[str, Any]:
        """What is compared, apart from the values of some columns."""
        parts = self.model_dump(mode="json", exclude={"sentence", "as_published"})
        for key in ("cells", "less", "over"):
            if parts[key] is not None:
                parts[key] = {k: v for k, v in parts[key].items() if k not in columns}
        return parts | {"each": [column for column in self.each if column not in columns]}

    def ambiguity(self, first: Mapping[Any, Any], second: Mapping[Any, Any]) -> str:
        """What to do about two rows of one seed that are on the same side."""
        keys = itertools.takewhile(lambda column: column != SEED, first.keys())
        differ = ", ".join(column for column in keys if str(first[column]) != str(second[column]))
        return (
            f"{self.table}: {self.cells} are several rows of seed {first[SEED]}, which differ in "
            f"{differ or 'nothing that names a cell'}: say which one in cells, or list the column "
            "in each"
        )

    def all_cells(self) -> dict[str, Cells]:
        """The cells that each key names."""
        names = ("cells", "less", "over", "as_published")
        keys = {name: getattr(self, name) for name in names}
        keys |= {f"needs.{i}.where": need.where for i, need in enumerate(self.needs)}
        return {name: cells for name, cells in keys.items() if isinstance(cells, dict)}
