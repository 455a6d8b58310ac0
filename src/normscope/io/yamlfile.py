"""Reading YAML files that people edit.

Scalars are those of YAML 1.2 (its core schema), as in JSON and as DVC reads them: ``010`` is ten,
``1e-2`` is a number, and ``yes`` and ``1:30`` are text. PyYAML reads YAML 1.1, in which they are
eight, text, true and ninety.
"""

import re
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from normscope.errors import Explained

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # with libyaml: ten times as fast
TAG = "tag:yaml.org,2002:"
INT = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
SCALARS = {  # tag, and the first characters of what the pattern matches
    "null": ("null|Null|NULL|~|", ["n", "N", "~", ""]),
    "bool": ("true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "int": (INT, [*"-+0123456789"]),
    "float": (FLOAT, [*"-+.0123456789"]),
    "merge": ("<<", ["<"]),
}


class _Loader(LOADER):  # pyright: ignore[reportGeneralTypeIssues]
    """Refuses keys that are given twice; PyYAML would keep the last."""

    yaml_implicit_resolvers: ClassVar = {}

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # deep, so that an alias inside the value that it names is an error instead of a loop
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                is_merge = key_node.tag == f"{TAG}merge"
                key = key_node.value if is_merge else self.construct_object(key_node)
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"given twice: {key_node.value}", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


for tag, (pattern, starts) in SCALARS.items():
    _Loader.add_implicit_resolver(TAG + tag, re.compile(rf"^(?:{pattern})$"), starts)
_Loader.add_constructor(f"{TAG}int", _int)


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        Explained: it is not YAML in UTF-8, or a key is given twice; with the file and the line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        reason = ": ".join(filter(None, [e.context, e.problem]))
        raise Explained(f"{path}{where}: {reason}") from e
    except yaml.reader.ReaderError as e:
        raise Explained(f"{path}: not text at position {e.position}: {e.reason}") from e
    except UnicodeDecodeError as e:
        line = e.object[: e.start].count(b"\n") + 1
        raise Explained(f"{path}, line {line}: not UTF-8 text: save the file as UTF-8") from e
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


def check_configfiles(words: Sequence[str]) -> None:
    """End the process with one line if a file of ``snakemake --configfile`` cannot be read.

    Snakemake reads these files before the Snakefile, and tells neither the file nor the line of an
    error. profiles/default/config.yaml calls this earlier.
    """
    flags = ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("--configfile", "--configfiles", nargs="+", type=Path, default=[])
    for path in flags.parse_known_args(words)[0].configfile:
        try:
            read_config(path)
        except Explained as e:
            hint = "" if path.exists() else "; all words after --configfile are read as files"
            sys.exit(f"error: {e}{hint}")


def overlay(base: Any, choices: Any) -> Any:
    """A configuration with other values, merged key by key. Lists are replaced as a whole."""
    if not (isinstance(base, Mapping) and isinstance(choices, Mapping)):
        return choices
    return {**base, **{key: overlay(base.get(key), choices[key]) for key in choices}}
