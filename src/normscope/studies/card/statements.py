"""The published statements that a card asks of a norm: ``statements.yaml``. No pandas."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from normscope.io.yamlfile import read_yaml
from normscope.schema import Strict


class Asked(Strict):
    """A statement, and how models answer it.

    Args:
        asks: What is asked of the models.
        table: A table of the card.
        where: Values of its columns, that select the rows.
        measure: An expression of its columns, averaged over the rows of a model.
        within: The interval in which a model agrees with the statement.
    """

    asks: str
    table: str
    where: Mapping[str, Any] = {}
    measure: str
    within: list[float] = Field(min_length=2, max_length=2)


@cache
def statements() -> dict[str, Asked]:
    """The statements by their keys in the ledger."""
    content = read_yaml(Path(__file__).with_name("statements.yaml"))
    return {key: Asked.model_validate(entry) for key, entry in content.items()}
