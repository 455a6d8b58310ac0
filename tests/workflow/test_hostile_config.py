"""Text of the configuration in shells, file names and wildcards: rejected or kept unchanged."""

import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml
from project import Project, fresh
from texts import Text, changed, names, texts

from normscope.config import ConfigError, load
from normscope.io import dataset

# all that a shell, Snakemake or a reader of flags could take for something else, in 100 characters
MIXED = (
    '-it\'s "q" `touch PWNED` $(touch PWNED) ; touch PWNED # {input} {wildcards.x} ünï 世 \\ '
    "&|<*?[a]~!"
)
HOSTILE = [
    MIXED,
    f"https://host/{MIXED}",
    "'; touch PWNED; '",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a; touch PWNED",
    "a\nb",
    "a\r\nb",
    "a\0b",
    "\ud800",
    "--out",
    "two words",
    " ",
    "",
    '"',
    "it's",
    "{input}",
    "{wildcards.x}",
    "{{",
    "ünï_世",
    "a" * 300,
    "é" * 300,
    "a/b",
    "/etc/passwd",
    "..",
    "../..",
    "~",
]
MODELS = [
    {"name": "tiny", "family": "Tiny", "source": {"kind": "directory", "path": "tiny_model"}},
    {
        "name": "hub",
        "family": "Hub",
        "base": "tiny",
        "blocks": "model.layers",
        "final_norm": "model.norm",
        "source": {"kind": "hub", "repo": "org/model", "revision": "refs/pr/1"},
    },
]
PIN = {"kind": "wheel", "requirement": "a==1", "sha256": "0" * 64, "member": "a/b.gguf"}
SOURCES = [{"kind": "path", "path": "corpus.txt"}, {"kind": "url", "url": "https://host/a"}, PIN]


def full(config: dict[str, Any]) -> dict[str, Any]:
    """A small configuration with every text that there can be."""
    config = deepcopy(config)
    config["dataset"] |= {"directory": "nanogpt", "sources": SOURCES}
    models = [*MODELS, {"name": "wheel", "family": "Wheel", "source": PIN}]
    config["pretrained"]["models"] = deepcopy(models)
    return config


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """In a folder whose name is as hostile as its configuration is to be."""
    where = tmp_path_factory.mktemp("hostile") / re.sub("{.*}", "", MIXED)
    project = fresh(where)
    (where / "sources").mkdir()
    shutil.copy(where / "corpus.txt", where / "sources" / MIXED)
    (where / MIXED).mkdir()
    for name, content in dataset.files(dataset.encode((where / "corpus.txt").read_text())).items():
        (where / MIXED / name).write_bytes(content)
    for path in (where / "tiny_model").iterdir():
        shutil.copy(path, where / MIXED / path.name)
    (where / MIXED / "{x}.json").write_text("{}")
    yield project
    assert list(where.rglob("PWNED*")) == []


@pytest.fixture(scope="module")
def config(project: Project) -> dict[str, Any]:
    return full(yaml.safe_load((project.root / "config.yaml").read_text()))


def refused(config: dict[str, Any]) -> str:
    """What is said against a configuration, if anything."""
    try:
        load(config)
    except ConfigError as e:
        return str(e)
    return ""


@pytest.fixture(scope="module")
def accepted(config: dict[str, Any]) -> dict[Text, list[str]]:
    """What of the hostile texts each place takes; what it does not is an error that names it."""
    load(config)
    taken: dict[Text, list[str]] = {}
    for text in texts(config):
        for value in HOSTILE:
            refusal = refused(changed(config, text, value))
            assert not refusal or text.key in refusal, (text, value)
            if not refusal:
                taken.setdefault(text, []).append(value)
    return taken


def test_every_text_of_the_schema_is_tried(config: dict[str, Any]):
    assert {text.name for text in texts(config)} == set(names())


def test_text_that_is_free_is_where_files_and_families_are(accepted: dict[Text, list[str]]):
    free = {text.name for text, values in accepted.items() if MIXED in values}
    assert free == {
        "dataset.directory",
        "dataset.sources.*<path>.path",
        "dataset.sources.*<wheel>.member",
        "pretrained.models.*.family",
        "pretrained.models.*.source<directory>.path",
        "pretrained.models.*.source<wheel>.member",
    }
    for text, values in accepted.items():
        if text.name not in free | {"dataset.sources.*<url>.url"}:
            for value in values:  # no shell, flag or folder has another reading of it
                assert re.fullmatch(r"\w[\w./+-]*", value), text
                assert ".." not in value, text


def test_what_no_file_can_be_called_is_refused_everywhere(accepted: dict[Text, list[str]]):
    for text, values in accepted.items():
        assert not {"", "a\0b", "a\nb", "a\r\nb", "\ud800"} & set(values), text


def words(command: str) -> Iterator[str]:
    """What a shell makes of a command, and the texts of the JSON in it."""
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
    project: Project, config: dict[str, Any], accepted: dict[Text, list[str]]
):
    given = {text: f"{value}{i}" for i, (text, (value, *_)) in enumerate(accepted.items())}
    for text, value in given.items():
        config = changed(config, text, value)
    (project.root / config["dataset"]["directory"]).symlink_to(project.root / MIXED)
    (project.root / "config.yaml").write_text(yaml.safe_dump(config))
    output = project.snakemake("--dry-run", "--printshellcmds")
    commands = re.findall("^Shell command: (.*)", output, re.MULTILINE)
    assert len(commands) == len(re.findall(r"^ *rule ", output, re.M))
    passed = {word for command in commands for word in words(command)}
    for text, value in given.items():
        by_environment = text.name.startswith("dataset.sources")
        assert ({value, f"./{value}"} & passed == set()) == by_environment, text
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
    with (project.root / MIXED / "val.bin").open("ab") as file:  # what decides is still seen
        file.write(b"\0\0")
    assert "dataset" in project.planned(*targets)


def test_a_source_that_hangs_is_passed_over_and_named(project: Project, config: dict[str, Any]):
    os.mkfifo(project.root / "pipe")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        del config["dataset"]["directory"]
        config["dataset"]["sources"] = [
            {"kind": "path", "path": "pipe"},
            {"kind": "url", "url": url, "timeout_s": 0.5},
            {"kind": "path", "path": f"sources/{MIXED}"},
        ]
        (project.root / "config.yaml").write_text(yaml.safe_dump(config))
        project.snakemake("results/dataset/meta.json")
    first, second, third = (project.root / "results/logs/dataset.log").read_text().splitlines()
    assert first.startswith("passed over: path pipe: OSError: not a regular file")
    assert second == f"passed over: url {url}: TimeoutError: no end after 0.5 s, its timeout_s"
    assert third == f"corpus: path sources/{MIXED}"
