"""Names that files, wildcards, tables, statements and LaTeX macros carry unchanged. No pandas."""

from typing import Annotated

from pydantic import AfterValidator, Field

PATTERN = r"^[a-z][a-z0-9_]*$"
LONGEST = 60  # characters: a job's name has several names, and a file's name has 255 bytes at most
MISREAD = ("false", "inf", "infinity", "nan", "null", "true")  # by readers of CSV, as no text


def survives_tables(name: str) -> str:
    """The name; an error if a table's reader would take it for a number or for a missing value."""
    try:
        float(name)
    except ValueError:
        if name not in MISREAD:
            return name
    raise ValueError(f"{name!r} is not text in a table, which is read back: choose another name")


Key = Annotated[str, Field(pattern=PATTERN, max_length=LONGEST), AfterValidator(survives_tables)]
