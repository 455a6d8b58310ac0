"""The table of matrix.yaml: changes of inputs, and the jobs that run again."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TABLE = yaml.safe_load(Path(__file__).with_name("matrix.yaml").read_text())


def cases() -> Iterator[Any]:
    """Changes of the configuration, joint or single, and the jobs that run again."""
    for row in TABLE["config"]:
        single = [{key: value} for key, value in row.get("change", {}).items()]
        for change in single or [row["together"]]:
            yield pytest.param(change, row["jobs"], id=json.dumps(change))


def cases_from_another() -> Iterator[Any]:
    for row in TABLE["from_another"]:
        for key, value in row["change"].items():
            yield pytest.param(row["configuration"], {key: value}, row["jobs"], id=key)


def changed(config: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A configuration with other values at dotted keys; one past a list's end is added."""
    config = copy.deepcopy(config)
    for key, value in change.items():
        node: Any = config
        *path, last = key.split(".")
        for part in path:
            node = node[int(part) if isinstance(node, list) else part]
        if not isinstance(node, list):
            node[last] = value
        elif int(last) == len(node):
            node.append(value)
        else:
            node[int(last)] = value
    return config


def leaves(node: dict[str, Any], defs: dict[str, Any], at: tuple[str, ...] = ()) -> set[str]:
    """Dotted keys of a JSON schema; * for an entry of a list or of a table."""
    node = defs[node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
    entries = node.get("items"), node.get("additionalProperties")
    parts = [("*", part) for part in entries if isinstance(part, dict)]
    parts += [("*", part) for part in node.get("patternProperties", {}).values()]
    parts += node.get("properties", {}).items()
    keys = {leaf for key, part in parts for leaf in leaves(part, defs, (*at, key))}
    for part in node.get("anyOf", node.get("oneOf", [])):
        if part.get("type") != "null":
            keys |= leaves(part, defs, at)
    return keys or {".".join(at)}


def given(key: str, value: Any) -> Iterator[str]:
    """Dotted keys of all values that a change gives."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from given(f"{key}.{name}", part)
    else:
        yield key
