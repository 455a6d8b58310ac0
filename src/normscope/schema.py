"""Validated values, from which every part of the configuration is built. No torch in here.

The workflow reads this module for every job.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)


class Strict(BaseModel):
    """An unknown key is an error; values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _AddedField:
    """Marks a field that a recipe received after models of it had been trained."""


ADDED = _AddedField()


class GrowingModel(Strict):
    """A recipe to which fields are added: ``field: Annotated[type, ADDED] = default``.

    Such a field is left out of the serialized recipe while it has its default. The parameters of
    older jobs then stay the same to the byte, and so do the digests that follow from them.
    """

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        later = {
            name
            for name, field in type(self).model_fields.items()
            if ADDED in field.metadata and getattr(self, name) == field.default
        }
        return {name: value for name, value in serialize(self).items() if name not in later}


PositiveInt = Annotated[int, Field(gt=0, lt=2**63)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def distinct(values: list) -> list:
    """The values; an error that names those given twice."""
    twice = sorted({str(v) for v in values if values.count(v) > 1})
    if twice:
        raise ValueError(f"given twice: {', '.join(twice)}")
    return values


Distinct = AfterValidator(distinct)
NonEmpty = Field(min_length=1)

FLOATS = ".9g"  # how tables write numbers, by which cells are found in them


def rate_name(learning_rate: float) -> str:
    """``0.0001``: exact, without an exponent, for names of files."""
    return f"{Decimal(repr(learning_rate)):f}"


def _survives_tables(rate: float) -> float:
    if float(f"{rate:{FLOATS}}") != rate:
        raise ValueError(f"tables keep 9 digits, in which {rate!r} is {rate:{FLOATS}}: give that")
    return rate


Rate = Annotated[PositiveFloat, AfterValidator(_survives_tables), Field(description="of Adam")]
