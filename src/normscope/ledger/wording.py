"""Texts of a statement in which numbers are filled in, such as ``within {margin:g} nats``."""

import re
from collections.abc import Mapping
from string import Formatter

from normscope.errors import suggest

WIDE = re.compile(r"\d{3}")  # a width or precision that would fill the page


def check_fields(text: str, values: Mapping[str, float | str | None]) -> None:
    """Whether a text can be filled in.

    Args:
        text: with fields as ``str.format`` has them: ``{margin}``, ``{margin:g}``.
        values: of every field that is filled in; None for one that the statement lacks.

    Raises:
        ValueError: it names another field, one that is missing, or a format that the value does
            not have.
    """
    try:
        parts = list(Formatter().parse(text))
    except ValueError as e:
        raise ValueError(f"{e}; write {{{{ and }}}} for braces") from None
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        known = [name for name, value in values.items() if value is not None]
        if field not in values:
            filled = ", ".join(f"{{{name}}}" for name in known) or "nothing"
            near = suggest(field, known)
            raise ValueError(f"{{{field}}} is unknown: only {filled} can be filled in; {near}")
        if (value := values[field]) is None:
            raise ValueError(f"{{{field}}} is used, and {field} is missing: give it")
        written = f"{{{field}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
        try:
            if conversion or WIDE.search(spec or ""):
                raise ValueError("a number has no such format")
            format(value, spec or "")
        except ValueError as e:
            raise ValueError(f"{written}: {e}; {{{field}:g}} is a short number") from None
