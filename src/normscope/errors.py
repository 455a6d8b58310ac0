"""Errors that a user can fix: they are shown as one message, without a traceback."""

import contextlib
import difflib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from reprlib import Repr
from textwrap import shorten
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from normscope.locks import lock

LONGEST = 100  # characters of a key or a value that a message quotes
# with YAML's aliases, a few lines can stand for a value too large to print
SHOWN = Repr()
SHOWN.maxlevel, SHOWN.maxstring, SHOWN.maxlong, SHOWN.maxother = 2, LONGEST, LONGEST, LONGEST
MOST = 5  # places with the same problem that a message lists


class Explained(Exception):
    """An error that a user can fix; its message names the thing, the reason and the way out.

    The message may quote a user's text, of which only what can be printed reaches a terminal.
    """

    def __str__(self) -> str:
        text = super().__str__()
        return "".join(
            c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
        )


def suggest(word: object, known: Iterable[object]) -> str:
    """A hint for an unknown word: the closest known word, or all known words."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(word), names, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none'}"


def explain(
    errors: Iterable[ErrorDetails], schema: Callable[[], Any] = dict, whole: str = ""
) -> list[str]:
    """One line for each problem that pydantic found: the keys that have it, and the reason.

    Args:
        errors: of a ``ValidationError``.
        schema: makes the JSON schema of what was validated, for the closest known key.
        whole: names what was validated in a problem that no key has.
    """
    places: dict[str, list[str]] = {}
    for error in errors:
        is_unknown = error["type"] == "extra_forbidden"
        problem = reason(error, _known_keys(schema(), error["loc"][:-1]) if is_unknown else ())
        key = ".".join(_short(str(part)) for part in error["loc"] if part != "[key]")
        places.setdefault(problem, []).append(key or whole)
    return [": ".join(filter(None, [_first_keys(k), problem])) for problem, k in places.items()]


def reason(error: ErrorDetails, known: Iterable[str] = ()) -> str:
    """What is wrong, in one line: with the value, or with the closest known key.

    Args:
        error: of a ``ValidationError``.
        known: the keys that are allowed in the place of an unknown one.
    """
    kind, got = error["type"], error["input"]
    message = error["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        names = list(known)
        message = "unknown key" + (f"; {_remedy(str(error['loc'][-1]), names)}" if names else "")
    elif kind not in ("missing", "value_error"):
        if kind in ("model_type", "dict_type"):
            message = "Input should be keys with values"
        message += f", got {SHOWN.repr(got)} ({type(got).__name__})"
        if kind == "string_type" and isinstance(got, int | float):
            message += ": write it in quotes"
    message = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    return shorten(message, 800, placeholder=" ...")


def _first_keys(keys: list[str]) -> str:
    """The keys that share a problem; of many, the first few."""
    others = len(keys) - MOST
    return ", ".join(keys[:MOST]) + (f" and {others} others" if others > 0 else "")


def _short(text: str) -> str:
    """A part of a key, printable and on one line."""
    return text if text.isprintable() and text and len(text) <= LONGEST else SHOWN.repr(text)


def _remedy(key: str, known: list[str]) -> str:
    """The remedy for an unknown key: to nest a dotted key, or the closest known key."""
    first, *rest = key.split(".")
    if first not in known or not rest:
        return suggest(_short(key), known)
    inner = "".join(f"{{{part}: " for part in rest) + "..." + "}" * len(rest)
    return f"nest what is written with dots: {first}: {inner}"


def _known_keys(schema: dict[str, Any], places: Sequence[int | str]) -> list[str]:
    """The keys that a JSON schema allows in a place."""
    node = schema or {"properties": {}}
    for part in places if schema else ():
        if isinstance(part, int):
            node = node["items"]
        elif "discriminator" in node:  # the part names a member of a union
            node = {"$ref": node["discriminator"]["mapping"][part]}
        elif part in node.get("properties", {}):
            node = node["properties"][part]
        elif "patternProperties" in node:  # a key that the user chooses
            (node,) = node["patternProperties"].values()
        else:
            node = node["additionalProperties"]
        if "anyOf" in node:  # or null
            node = next(kind for kind in node["anyOf"] if kind.get("type") != "null")
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return list(node["properties"])


def run_script(main: Callable[[], None]) -> None:
    """Run the ``main`` of a script, after the same job of a killed Snakemake has ended.

    An error that a user can fix ends the process with ``error: ...`` and status 1.
    """
    from pydantic_settings import SettingsError  # noqa: PLC0415 - the workflow needs no flags

    try:
        _wait_for_orphan()
        main()
    except ValidationError as e:
        sys.exit("\n".join(f"error: {line}" for line in explain(e.errors())))
    except (Explained, OSError, SettingsError) as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted; start again to continue")


def _wait_for_orphan() -> None:
    """Wait for another process with this log: the same job, which outlived a killed Snakemake.

    Both would write the same files.
    """
    log = sys.stderr.fileno()
    if not stat.S_ISREG(os.fstat(log).st_mode):
        return
    with contextlib.suppress(OSError):  # a file system without locks
        if not lock(log, wait=False):
            print("waiting for the same job of a Snakemake that was killed", file=sys.stderr)
            lock(log)
