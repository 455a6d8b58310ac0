"""Rule manifest: the origin of every result, without times, hosts or commits.

The same inputs give the same bytes.
"""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import Figures, Studies
from normscope.errors import run_script
from normscope.io.files import read_json, seal, write_json
from normscope.io.texts import DATASET, text_folder
from normscope.schema import Strict
from normscope.studies.study import Study

PACKAGES = (
    "torch numpy pandas scipy matplotlib safetensors pydantic transformers tokenizers "
    "accelerate gguf statsmodels jinja2 pypandoc_binary typst snakemake"
).split()


class PrintedStudies(Studies):
    """What determines the paper, except for the texts, which are recorded by their hashes."""

    figures: Figures


class Flags(Strict):
    """Write manifest.json."""

    sources: CliPositionalArg[list[Path]] = Field(
        description="files that determine the results, with a digest of the code of each script"
    )
    config: PrintedStudies = Field(description="the configuration of the paper as JSON")
    studies: list[str] = Field(default=[], description="whose results to list; by default of all")
    results: Path = Field(description="directory with one folder per study")
    dataset: Path = Field(description="meta.json of the default text")
    project: Path = Field(description="directory of the code, to which paths are relative")
    out: Path


def parts(study: Study, folder: Path) -> dict[str, dict[str, Any]]:
    """The records of trained and of measured models, by name."""
    known: dict[str, dict[str, Any]] = {"models": {}, "probes": {}}
    for record in study.records():
        kind, name, _ = Path(record).parts
        known[kind][name] = read_json(folder / record)
    return known


def relative_path(path: Path, project: Path) -> str:
    """The path of a file, relative to the project if the file is in it."""
    return str(path.relative_to(project) if path.is_relative_to(project) else path)


def main() -> None:
    flags = parse(Flags)
    config = flags.config.model_dump_json()
    every = flags.config.studies
    listed = {name: every[name] for name in flags.studies or every}
    read = dict.fromkeys(t for study in listed.values() for t in study.texts_read)
    texts = {name: text_folder(flags.dataset.parent, name) for name in read if name != DATASET}
    studies = {name: parts(study, flags.results / name) for name, study in listed.items()}
    manifest = {
        "config": json.loads(config),
        "config_sha256": hashlib.sha256(config.encode()).hexdigest(),
        "dataset": read_json(flags.dataset),
        "texts": {n: read_json(at / "meta.json") for n, at in texts.items()},
        "device": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "studies": studies,
        "sources_sha256": {
            relative_path(path, flags.project): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in flags.sources
        },
    }
    write_json(flags.out, manifest)
    seal(flags.out)


if __name__ == "__main__":
    run_script(main)
