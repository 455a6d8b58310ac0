"""Arms of a configuration whose norms have code of their own: a file, or an installed class.

A user's file, and those that it imports from its folder, are copied into a folder named by a digest
of their statements. Jobs run this copy. Before anything is trained, a process of its own examines
the norm; what it finds is kept next to the copy, and becomes a part of the configuration.
"""

import ast
import hashlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema

from normscope.errors import Explained
from normscope.io.corpus import Line
from normscope.io.files import write_bytes
from normscope.io.names import Key
from normscope.io.provenance import PACKAGE, closure, code_digest, source_digest
from normscope.nn import arms
from normscope.nn.recipe import Custom, Norm
from normscope.schema import Strict

EXAMINATION = PACKAGE / "measure/examination.py"
CLASS = r":[A-Za-z_]\w*$"  # after the file or the package
TIMEOUT_S = 120  # of an examination, most of which is the import of torch
BUILT_IN = {row.name: row.label for row in arms.BUILT_IN}


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise ValueError(f"give numbers, text, lists and mappings: {e}") from None
    return options


class CustomArm(Strict):
    """An arm whose norm has code of its own."""

    module: Annotated[
        str, Field(pattern=rf"^[^:\r\n]+{CLASS}"), AfterValidator(os.path.expanduser)
    ] = Field(
        description="file.py:Class, found from the folder of the configuration file, or "
        "package.module:Class of an installed package. The class is called with d, in its first "
        "argument without a default that options does not name, or in one that is named d, "
        "hidden_size or the like, and maps (..., d) to (..., d)"
    )
    label: Line | None = Field(default=None, description="in figures; by default its class")
    options: Annotated[dict[str, Any], AfterValidator(_plain)] = Field(
        default={}, description="further arguments of the class"
    )
    custom: SkipJsonSchema[Custom | None] = Field(
        default=None, description="what an examination found, which is filled in"
    )

    def row(self, name: str) -> arms.Row:
        """Its row of the registry."""
        norm = Norm(statistic="custom", custom=self.custom).model_dump()
        return arms.Row(name, str(self.label), self.module, norm)


def register(given: dict[str, CustomArm]) -> dict[str, CustomArm]:
    """Make the arms that were examined those that are added to the registry.

    Raises:
        Explained: A name, a label or a norm is that of another arm.
    """
    arms.add(*(arm.row(name) for name, arm in given.items() if arm.custom))
    return given


# whatever is told of these arms knows them from then on
CustomArms = Annotated[dict[Key, CustomArm], AfterValidator(register)]


def name_card_norms(raw: Any) -> None:
    """Add an arm for each norm of a card that is a class, and name this arm in its place.

    Args:
        raw: The configuration as it was parsed, which is changed.
    """
    card = raw.get("card") if isinstance(raw, dict) else None
    known = raw.get("arms", {}) if isinstance(raw, dict) else None
    if not isinstance(card, dict) or not isinstance(known, dict):
        return
    given = card.get("norm")
    norms = list(_split(given, BUILT_IN | known)) if isinstance(given, str) else given
    if not isinstance(norms, list):
        return
    card["norm"] = [_arm_name(str(norm), known) for norm in norms]
    if known:
        raw["arms"] = known


def _split(text: str, known: Collection[str]) -> Iterator[str]:
    """Norms with spaces between them: each is a known arm, or ends with the name of a class."""
    words: list[str] = []
    for word in re.split(r"\s", text):
        words += [word] if words or word else []
        if (len(words) == 1 and word in known) or re.search(CLASS, word):
            yield " ".join(words)
            words = []
    yield from filter(None, words)


def _arm_name(norm: str, known: dict[str, Any]) -> str:
    """The arm of a norm, which is added to the known ones if it is a class.

    Raises:
        Explained: It is a file or a package without a class.
    """
    place, colon, kind = norm.rpartition(":")
    if not colon:
        if norm.endswith(".py") or "." in norm:
            package, _, last = norm.rpartition(".")
            example = f"{norm}:MyNorm" if norm.endswith(".py") else f"{package}:{last}"
            raise Explained(f"card.norm: {norm} names no class: write {example}")
        return norm
    name = _slug(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind))
    entry = {"module": norm}
    if name in BUILT_IN or known.get(name, entry) != entry:
        name = _slug(f"{place.removesuffix('.py').rpartition('/')[2]}_{name}")
    while known.get(name, entry) != entry:
        name += "_2"
    known[name] = entry
    return name


def _slug(words: str) -> str:
    """A name of an arm from other words."""
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    try:
        return TypeAdapter(Key).validate_python(name)
    except ValidationError:  # it begins with a digit, or would be read as a number
        return f"norm_{name}"


def add_arms(raw: Any, folders: Sequence[Path], copies: Path) -> None:
    """Examine the custom arms of a configuration, and add them to the registry.

    Args:
        raw: The configuration as it was parsed, which gets what was found; what is wrong in it is
            reported when it is validated.
        folders: Where files are looked for, in turn.
        copies: The folder for copies of the code and for what examinations find.

    Raises:
        Explained: A norm is not found or cannot be trained, or an arm is that of another one.
    """
    name_card_norms(raw)
    given = raw.get("arms") if isinstance(raw, dict) else None
    examined: dict[str, CustomArm] = {}
    for name, entry in (given if isinstance(given, Mapping) else {}).items():
        try:
            arm = CustomArm.model_validate(entry)
        except ValidationError:
            continue
        if name in BUILT_IN:
            raise Explained(f"arms.{name}: a built-in arm has this name: choose another")
        try:
            custom = _examination(_find_custom(arm, folders, copies), copies)
        except Explained as e:
            raise Explained(f"arms.{name}: {e}") from None
        label = arm.label or _label(arm.module, [one.label for one in examined.values()])
        examined[str(name)] = arm.model_copy(update={"label": label, "custom": custom})
    register(examined)
    if examined:
        raw["arms"] = {**raw["arms"], **{name: arm.model_dump() for name, arm in examined.items()}}


def _label(module: str, others: Collection[str | None]) -> str:
    """The class of a module, with its place if the class alone is the label of another arm."""
    place, _, kind = module.rpartition(":")
    shown = kind.strip("_") or kind
    return f"{shown} ({place})" if kind in {*BUILT_IN.values(), *others} else shown


def _find_custom(arm: CustomArm, folders: Sequence[Path], copies: Path) -> Custom:
    """The norm of an arm, with the digest or the version of its code."""
    place, _, kind = arm.module.rpartition(":")
    if not place.endswith(".py"):
        return Custom(name=arm.module, options=arm.options, code=_version(place.split(".")[0]))
    paths = [folder / Path(place).expanduser() for folder in folders]
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        looked = " and ".join(str(folder.absolute()) for folder in dict.fromkeys(folders))
        raise Explained(f"there is no file {place} in {looked}")
    sources = {file.name: file.read_bytes() for file in _find_files(path.absolute())}
    digests = " ".join(f"{name} {source_digest(source)}" for name, source in sources.items())
    code = hashlib.sha256(digests.encode()).hexdigest()[:16]
    for name, source in sources.items():
        copy = copies / code / name
        if not copy.is_file() or copy.read_bytes() != source:
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(copy, source)
    name, folder = f"{path.name}:{kind}", str(copies / code)
    return Custom(name=name, options=arm.options, code=code, folder=folder)


def _find_files(path: Path) -> list[Path]:
    """A file, and those of its folder that it imports, transitively.

    Raises:
        Explained: A file is not Python, or imports what is not copied.
    """
    files, todo = {path: None}, [path]
    while todo:
        file = todo.pop()
        for name in _imports(file):
            other = path.parent / name
            if other.is_dir() and any(other.glob("*.py")):
                raise Explained(
                    f"{file.name} imports the folder {name}: put what it needs in files next to it"
                )
            if (other := other.with_suffix(".py")).is_file() and other not in files:
                files[other] = None
                todo.append(other)
    return list(files)


def _imports(file: Path) -> Iterator[str]:
    """The top-level names of the modules that a file imports.

    Raises:
        Explained: It is not Python, or has a relative import.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as e:
        place = f", line {e.lineno}" if isinstance(e, SyntaxError) and e.lineno else ""
        raise Explained(f"{file}{place}: {getattr(e, 'msg', e)}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise Explained(f"{file.name}, line {node.lineno}: write `import name`, without a dot")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _version(package: str) -> str:
    """The distribution and version of an installed package."""
    distributions = importlib.metadata.packages_distributions().get(package)
    if not distributions:
        raise Explained(
            f"no package {package!r} is installed here: install it, or name a file, file.py:Class"
        )
    name = distributions[0]
    version, _, _ = importlib.metadata.version(name).partition("+")  # of any build
    return f"{name}=={version}"


def _examination(custom: Custom, copies: Path) -> Custom:
    """The norm with what its examination finds, or found before."""
    identity = f"{custom.model_dump_json()} {code_digest(closure(EXAMINATION))}"
    out = copies / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    if not out.is_file():
        _examine(custom, out.absolute())
    return Custom.model_validate_json(out.read_text())


def _examine(custom: Custom, out: Path) -> None:
    """Run the examination of a norm, which writes a file, and end all processes that it started.

    Raises:
        Explained: It failed, ended without a word, or took too long.
    """
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]  # this package before others
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # -P: without the modules of the working directory
    command = [sys.executable, "-P", "-m", "normscope.measure.examination"]
    name, at = custom.name, "when it was built and run on a few tokens"
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        # a session of its own is a group of processes, which may outlive the first one
        process = subprocess.Popen(
            [*command, "--norm", custom.model_dump_json(), "--out", str(out)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Explained(
                f"{name} did not finish in {TIMEOUT_S} s {at}: look for an endless loop"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        stderr.seek(0)
        lines = stderr.read().split("\n")
    if errors := [line for line in lines if line.startswith("error: ")]:
        raise Explained(errors[-1].removeprefix("error: "))
    if status < 0:
        raise Explained(f"{name} was ended by {signal.Signals(-status).name} {at}")
    if not out.is_file():
        raise Explained(f"{name} ended its process with status {status} {at}")
