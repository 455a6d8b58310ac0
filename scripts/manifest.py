"""Rule manifest: where every result came from. No time, host or commit: same inputs, same bytes."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path

import torch
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.errors import report
from normscope.io.files import write_json
from normscope.schema import Strict
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.recall.grid import Recall

PACKAGES = [
    "torch",
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "safetensors",
    "pydantic",
    "transformers",
    "tokenizers",
    "accelerate",
    "gguf",
    "statsmodels",
    "markdown-it-py",
    "typst",
    "snakemake",
]


class Flags(Strict):
    """Write manifest.json."""

    runs: CliPositionalArg[list[Path]] = Field(description="config.json of every run")
    recall: Path = Field(description="directory of the runs of the decisive test")
    jacobian: Path = Field(description="directory of the runs of the norms' backward pass")
    depth: Path = Field(description="directory of the ensembles of every depth")
    pretrained: Path = Field(description="directory of the measured models")
    config: str = Field(description="the validated configuration as JSON")
    dataset: Path = Field(description="meta.json of the dataset")
    sources: str = Field(description="comma-separated source files that decide the results")
    out: Path


def main() -> None:
    flags = CliApp.run(Flags)
    runs = {path.parent.name: json.loads(path.read_text()) for path in flags.runs}
    config = json.loads(flags.config)
    trained = {
        flags.recall: Recall.model_validate(config["recall"]).trained(),
        flags.jacobian: Jacobian.model_validate(config["jacobian"]).trained(),
        flags.depth: Depth.model_validate(config["depth"]).recipes(),
    }
    for folder, names in trained.items():
        for name in names:
            runs[name] = json.loads((folder / name / "config.json").read_text())
    models = Pretrained.model_validate(config["pretrained"]).by_name()
    measured = {
        name: json.loads((flags.pretrained / name / "model.json").read_text()) for name in models
    }
    sources = [Path(name) for name in flags.sources.split(",")]
    manifest = {
        "config": config,
        "config_sha256": hashlib.sha256(flags.config.encode()).hexdigest(),
        "dataset": json.loads(flags.dataset.read_text()),
        "device": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "runs": runs,
        "pretrained": measured,
        "sources_sha256": {str(s): hashlib.sha256(s.read_bytes()).hexdigest() for s in sources},
    }
    write_json(flags.out, manifest)


if __name__ == "__main__":
    report(main)
