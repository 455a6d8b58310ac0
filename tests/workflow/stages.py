"""Which stages of dvc.yaml DVC enters after a change, read from what it declares."""

from typing import Any

import yaml
from project import ROOT

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
TRAINED = {  # rules of the stage `runs`
    *("dataset", "main_train", "recall_train", "jacobian_train", "depth_train"),
    "pretrained_probe",
}


def is_covered(path: str, dependencies: list[str]) -> bool:
    return any(path == d or path.startswith(f"{d}/") for d in dependencies)


def entered(path: str) -> set[str]:
    """By another content of a file."""
    return {name for name, stage in STAGES.items() if is_covered(path, stage["deps"])}


def entered_by(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """By another configuration."""
    stages = entered("config.yaml")
    for name, stage in STAGES.items():
        for files in stage.get("params", []):
            if any(value(before, key) != value(after, key) for key in files["config.yaml"]):
                stages.add(name)
    return stages


def value(config: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        config = config[part]
    return config
