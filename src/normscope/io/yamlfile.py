"""Reading YAML files that people edit."""

from pathlib import Path
from typing import Any

import yaml

from normscope.errors import Explained


class _OnceOnly(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise yaml.constructor.ConstructorError(
                None, None, f"given twice: {', '.join(twice)}", node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """What a file says.

    Raises:
        Explained: it is no YAML, or a key stands twice; with the file and the line.
    """
    try:
        return yaml.load(path.read_text(), _OnceOnly)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise Explained(f"{path}: {e}") from e
