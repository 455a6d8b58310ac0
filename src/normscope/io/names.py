"""Names that are valid in files, wildcards, tables, statements and LaTeX macros. No pandas."""

from typing import Annotated

from pydantic import AfterValidator, Field

PATTERN = r"^[a-z][a-z0-9_]*$"
LONGEST = 60  # a job's name consists of several names, and a file's name has at most 255 bytes
# texts that CSV readers take for missing values or booleans
MISREAD = ("", "#n/a", "<na>", "false", "n/a", "na", "none", "null", "true")


def survives_tables(name: str) -> str:
    """Return the name if CSV readers take it for text, not for a number or a missing value."""
    try:
        float(name)
    except ValueError:
        if name == "none" or name.lower() not in MISREAD:  # "none" is an arm
            return name
    raise ValueError(f"{name!r} is not text in a table, which is read back: choose another name")


Key = Annotated[str, Field(pattern=PATTERN, max_length=LONGEST), AfterValidator(survives_tables)]
