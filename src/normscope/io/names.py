"""Names that files, wildcards, tables, statements and LaTeX macros carry unchanged. No pandas."""

from typing import Annotated

from pydantic import AfterValidator, Field

PATTERN = r"^[a-z][a-z0-9_]*$"
LONGEST = 60  # characters: a job's name has several names, and a file's name has 255 bytes at most
# what readers of CSV take for no text; numbers are found by float
MISREAD = ("", "#n/a", "<na>", "false", "n/a", "na", "none", "null", "true")


def survives_tables(name: str) -> str:
    """The name; an error if a table's reader would take it for a number or for a missing value."""
    try:
        float(name)
    except ValueError:
        if name == "none" or name.lower() not in MISREAD:  # an arm, which is read as text
            return name
    raise ValueError(f"{name!r} is not text in a table, which is read back: choose another name")


Key = Annotated[str, Field(pattern=PATTERN, max_length=LONGEST), AfterValidator(survives_tables)]


RESERVED = ("others", "greatest", "every")  # stand for values of cells


def _is_not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} stands for several values in statements: choose another name")
    return name


CellName = Annotated[Key, AfterValidator(_is_not_reserved)]  # of an arm, a task or a protocol
