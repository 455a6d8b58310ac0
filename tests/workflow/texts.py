"""Where the configuration has text: from its schema, so that a new key is among them."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from normscope.config import Config

SCHEMA = Config.model_json_schema()


class Text(NamedTuple):
    """A place of one configuration that holds text, and what the schema calls it."""

    name: str
    at: tuple[str | int, ...]
    is_key: bool  # of a mapping whose keys are free

    @property
    def key(self) -> str:
        """The last part of its place that has a name in the schema."""
        at = self.at[:-1] if self.is_key else self.at
        return next(str(part) for part in reversed(at) if isinstance(part, str))


def _branches(node: dict) -> Iterator[tuple[str, dict]]:
    """What a node may be, each with the kind that it is known by."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    if nodes := node.get("anyOf", node.get("oneOf")):
        for branch in nodes:
            yield from _branches(branch)
    else:
        yield node.get("properties", {}).get("kind", {}).get("const", ""), node


def _is_text(branch: dict) -> bool:
    return branch.get("type") == "string" and not {"enum", "const"} & set(branch)


def names(node: dict = SCHEMA, path: str = "") -> Iterator[str]:
    """What the schema calls every text: ``pretrained.models.*.source<hub>.repo``."""
    for kind, branch in _branches(node):
        at = f"{path}<{kind}>" if kind else path
        if _is_text(branch):
            yield at
        for name, value in branch.get("properties", {}).items():
            yield from names(value, f"{at}.{name}".removeprefix("."))
        if "items" in branch:
            yield from names(branch["items"], f"{at}.*")
        for value in branch.get("patternProperties", {}).values():
            yield f"{at}.key"
            yield from names(value, f"{at}.*")


def texts(
    data: Any, node: dict = SCHEMA, path: str = "", at: tuple[str | int, ...] = ()
) -> Iterator[Text]:
    """The places of the schema's texts in a configuration."""
    for kind, branch in _branches(node):
        name = f"{path}<{kind}>" if kind else path
        if isinstance(data, dict) and kind in ("", data.get("kind")):
            for key, value in branch.get("properties", {}).items():
                if key in data:
                    yield from texts(
                        data[key], value, f"{name}.{key}".removeprefix("."), (*at, key)
                    )
            for value in branch.get("patternProperties", {}).values():
                for key in data:
                    yield Text(f"{name}.key", (*at, key), True)
                    yield from texts(data[key], value, f"{name}.*", (*at, key))
        elif isinstance(data, list) and "items" in branch:
            for i, item in enumerate(data):
                yield from texts(item, branch["items"], f"{name}.*", (*at, i))
        elif isinstance(data, str) and _is_text(branch):
            yield Text(name, at, False)


def changed(config: dict, text: Text, value: str) -> dict:
    """The configuration with another text at a place."""
    config = deepcopy(config)
    *path, last = text.at
    node: Any = config
    for part in path:
        node = node[part]
    if text.is_key:
        node[value] = node.pop(last)
    else:
        node[last] = value
    return config
