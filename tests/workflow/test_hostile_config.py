"""Text of the configuration in shells, file names and wildcards: rejected or kept unchanged."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml
from project import Project, fresh

from normscope.config import ConfigError, load
from normscope.io import dataset

# all that a shell or a reader of flags could take for something else, in 100 characters
MIXED = '-it\'s "q" `touch PWNED` $(touch PWNED) ; touch PWNED # ünï 世 \\ &|<*?[a]~!'
BRACES = "{input} {wildcards.x}"  # Snakemake's wildcards
NO_NAMES = ["a\nb", "a\0b", ""]  # no file can have them
HOSTILE = [MIXED, f"{MIXED} {BRACES}", f"https://host/{MIXED}", *NO_NAMES]
HOSTILE += ["--out", "{input}", "a" * 300, ".."]
PIN = {"kind": "wheel", "requirement": "a==1", "sha256": "0" * 64, "member": "a/b.gguf"}
SOURCES = [{"kind": "path", "path": "corpus.txt"}, {"kind": "url", "url": "https://host/a"}, PIN]
PART = {key: value for key, value in PIN.items() if key != "kind"}
PARTS = {"kind": "parts", "sha256": "0" * 64, "parts": [PART]}
HUB = {"kind": "hub", "repo": "org/model", "revision": "refs/pr/1"}
CHOSEN = {"base": "tiny", "blocks": "model.layers", "final_norm": "model.norm"}
MODELS = [
    {"name": "tiny", "family": "Tiny", "source": {"kind": "directory", "path": "tiny_model"}},
    {"name": "hub", "family": "Hub", "source": HUB, **CHOSEN},
    {"name": "wheel", "family": "Wheel", "source": PIN},
    {"name": "parts", "family": "Parts", "source": PARTS, "vocabulary": "a b"},
]
NAMED_BY_USERS = {"protocols", "tasks"}  # mappings whose keys are names
Place = tuple[str | int, ...]


def places(node: Any, at: Place = ()) -> Iterator[Place]:
    """The places of a configuration's texts, and of the keys that users choose."""
    if isinstance(node, str):
        yield at
    parts = node.items() if isinstance(node, dict) else enumerate(node)
    for key, part in () if isinstance(node, str) else parts:
        if at and at[-1] in NAMED_BY_USERS and isinstance(node, dict):
            yield (*at, key, "key")
        if isinstance(part, dict | list | str):
            yield from places(part, (*at, key))


def with_value(config: dict, at: Place, value: str) -> dict:
    """The configuration with another text at a place."""
    config = deepcopy(config)
    is_key = at[-1] == "key"
    *path, last = at[:-1] if is_key else at
    node: Any = config
    for part in path:
        node = node[part]
    if is_key:
        node[value] = node.pop(last)
    else:
        node[last] = value
    return config


def name_of(at: Place) -> str:
    """``dataset.sources.path``: a place without the positions in lists."""
    return ".".join(part for part in at if isinstance(part, str))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project in a folder with a hostile name."""
    where = tmp_path_factory.mktemp("hostile") / MIXED
    project = fresh(where)
    (where / MIXED).mkdir()
    for name, content in dataset.files(dataset.encode((where / "corpus.txt").read_text())).items():
        (where / MIXED / name).write_bytes(content)
    for path in (where / "tiny_model").iterdir():
        shutil.copy(path, where / MIXED / path.name)
    yield project
    assert list(where.rglob("PWNED*")) == []


@pytest.fixture(scope="module")
def config(project: Project) -> dict[str, Any]:
    """A small configuration with every kind of source."""
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    config["dataset"] |= {"directory": "nanogpt", "sources": SOURCES}
    config["pretrained"]["models"] = MODELS
    config["texts"] = {"austen": config["texts"]["austen"]}
    config["pilot"]["texts"] = ["dataset"]
    for study in ("norms", "main", "jacobian"):  # one title stands for all
        for name, protocol in config[study]["protocols"].items():
            if (study, name) != ("main", "small"):
                protocol.pop("title", None)
    return config


@pytest.fixture(scope="module")
def accepted(config: dict[str, Any]) -> dict[Place, list[str]]:
    """The hostile texts that each place accepts; an error about another names the place."""
    one_each = {name_of(at): at for at in places(config)}
    taken: dict[Place, list[str]] = {}
    for at in one_each.values():
        for value in HOSTILE:
            try:
                load(with_value(config, at, value))
            except ConfigError as e:
                path = at[:-2] if at[-1] == "key" else at
                key = [part for part in path if isinstance(part, str)][-1]
                assert key in str(e), (at, value)  # noqa: PT017 - most texts are refused
            else:
                taken.setdefault(at, []).append(value)
    return taken


def test_only_paths_and_families_may_be_any_text(accepted: dict[Place, list[str]]):
    free = {name_of(at) for at, values in accepted.items() if MIXED in values}
    assert free == {
        "dataset.directory",
        "dataset.sources.path",
        "dataset.sources.member",
        "pretrained.models.family",
        "pretrained.models.source.path",
        "pretrained.models.source.member",
        "pretrained.models.source.parts.member",
        "pretrained.models.vocabulary",
        "texts.austen.sources.path",
        "texts.austen.sources.member",
        "main.protocols.small.title",
    }
    for at, values in accepted.items():
        assert not set(NO_NAMES) & set(values), at
        if name_of(at) not in free | {"dataset.sources.url", "texts.austen.sources.url"}:
            for value in values:  # no shell, flag or folder has another reading of it
                assert re.fullmatch(r"\w[\w./+-]*", value), at
                assert ".." not in value, at


def words(command: str) -> Iterator[str]:
    """The words of a command, and the texts of the JSON in them."""
    for word in shlex.split(command):
        yield word
        todo = [json.loads(word)] if word.startswith("{") else []
        while todo:
            value = todo.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                todo += value.values() if isinstance(value, dict) else value


def test_every_text_reaches_its_script_as_one_word(
    project: Project, config: dict[str, Any], accepted: dict[Place, list[str]]
):
    given = {at: f"{value}{i}" for i, (at, (value, *_)) in enumerate(accepted.items())}
    for at, value in sorted(given.items(), key=lambda item: item[0][-1] == "key"):
        config = with_value(config, at, value)
    (project.root / config["dataset"]["directory"]).symlink_to(project.root / MIXED)
    for model in config["pretrained"]["models"]:
        if model["source"]["kind"] == "directory":
            (project.root / model["source"]["path"]).mkdir(exist_ok=True)
            (project.root / model["source"]["path"] / "config.json").write_text("{}")
    (project.root / "config.yaml").write_text(yaml.safe_dump(config))
    output = project.snakemake("--dry-run", "--printshellcmds")
    commands = re.findall("^Shell command: (.*)", output, re.MULTILINE)
    assert len(commands) == len(re.findall(r"^ *rule ", output, re.M))
    passed = {word for command in commands for word in words(command)}
    for at, value in given.items():
        in_a_file = name_of(at).startswith(("dataset.sources", "texts."))
        assert ({value, f"./{value}"} & passed == set()) == in_a_file, at
    for command in commands:
        joined = command.replace("""'"'"'""", "")  # an apostrophe, as shlex quotes it
        ours = r'"\$(NORMSCOPE|SNAKEMAKE_OUTPUT_CACHE)[\w/.]*"'
        bare = re.sub(rf"'[^']*'|{ours}", "", joined)
        assert not re.search(r"[$`;|<{}\\]|&(?!> )", bare), command


def test_files_by_any_name_are_read_and_measured(project: Project, config: dict[str, Any]):
    config["dataset"]["directory"] = MIXED
    model = {"name": "tiny", "family": MIXED, "source": {"kind": "directory", "path": MIXED}}
    config["pretrained"]["models"] = [model]
    (project.root / "config.yaml").write_text(yaml.safe_dump(config))
    targets = ("results/dataset/meta.json", "results/pretrained/tables/models.csv")
    project.snakemake(*targets)
    table = (project.root / "results/pretrained/tables/models.csv").read_text()
    assert re.search("^tiny,.*,False,,LlamaForCausalLM,RMSNorm", table, re.MULTILINE)
    assert project.planned(*targets) == {}
    (project.root / MIXED / "{x}.json").touch()
    assert "cannot be determined from output files" in project.snakemake(*targets, ok=False)
