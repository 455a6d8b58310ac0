"""Reading YAML files that people edit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from normscope.errors import Explained

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # with libyaml: ten times as fast


class _Loader(LOADER):  # pyright: ignore[reportGeneralTypeIssues]
    """Refuses keys that are given twice; PyYAML would keep the last."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # deep, so that an alias inside the value that it names is an error instead of a loop
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                is_merge = key_node.tag in ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")
                key = key_node.value if is_merge else self.construct_object(key_node)
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"given twice: {key_node.value}", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        Explained: it is not YAML, or a key is given twice; with the file and the line.
    """
    try:
        return yaml.load(path.read_bytes(), _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        reason = ": ".join(filter(None, [e.context, e.problem]))
        raise Explained(f"{path}{where}: {reason}") from e
    except yaml.reader.ReaderError as e:
        raise Explained(f"{path}: not text at position {e.position}: {e.reason}") from e
    except RecursionError as e:
        raise Explained(f"{path}: lists or mappings are nested too deep") from e
    except OSError as e:
        raise Explained(f"{path}: {e.strerror}") from e
    except ValueError as e:  # an invalid number or date
        raise Explained(f"{path}: {e}") from e


def read_config(path: Path) -> dict[str, Any]:
    """Read a configuration file, in YAML or JSON, with keys at its top level.

    Raises:
        Explained: it is neither, has no keys, or a key is given twice.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise Explained(f"{path}: a configuration has keys with values, and this file has none")
    return content


def laid_over(base: Any, choices: Any) -> Any:
    """A configuration with other values, merged key by key. Lists are replaced as a whole."""
    if not (isinstance(base, Mapping) and isinstance(choices, Mapping)):
        return choices
    return {**base, **{key: laid_over(base.get(key), choices[key]) for key in choices}}
