"""Texts of a statement with fields for numbers, such as ``within {margin:g} nats``."""

import re
from collections.abc import Mapping
from string import Formatter

from normscope.errors import suggest

WIDE = re.compile(r"\d{3}")  # a width or precision that would fill the page


def check_fields(text: str, values: Mapping[str, float | str | None]) -> None:
    """Check that the fields of a text can be filled in.

    Args:
        text: A text with fields for ``str.format``: ``{margin}``, ``{margin:g}``.
        values: The value of every field; None for one that the statement lacks.

    Raises:
        ValueError: A field is unknown or missing, or its format does not fit its value.
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
            is_text = isinstance(value, str)  # of a number
            right = f"{{{field}}} is rounded already" if is_text else f"{{{field}:g}} is short"
            raise ValueError(f"{written}: {e}; {right}") from None
