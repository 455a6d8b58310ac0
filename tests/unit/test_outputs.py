"""What a training writes: the four files of a run, read back, and its speed."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import safetensors.torch
import torch
from torch import nn

from normscope.train.outputs import Progress, write_run, write_timing

COLUMNS = ("step", "train_loss", "val_loss")
CURVE = [
    {"step": 1, "train_loss": 0.1 + 0.2, "val_loss": 1 / 3},
    {"step": 2, "train_loss": 1e-30, "val_loss": None},
    {"step": 3, "train_loss": None},
]


def model() -> nn.Module:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net(torch.randn(4, 3))
    return net


def write(out: Path, net: nn.Module, **parts: Any) -> None:
    defaults: dict[str, Any] = {"config": {}, "columns": COLUMNS, "curve": CURVE, "metrics": {}}
    write_run(out, net, **{**defaults, **parts})


def test_the_files_read_back_as_what_was_written(tmp_path):
    net, config = model(), {"seed": 1, "model": {"n_embd": 3}}
    write(tmp_path, net, config=config, metrics={"diverged_at": None})
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert stored.keys() == net.state_dict().keys()
    assert all(torch.equal(stored[name], t) for name, t in net.state_dict().items())
    assert json.loads((tmp_path / "config.json").read_text()) == config
    # 2 x 3 weights and 2 biases, then gain and bias of 2; running statistics are no parameters
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == {"diverged_at": None, "parameters": 6 + 2 + 2 + 2}
    raw = (tmp_path / "curve.csv").read_bytes()
    assert b"\r" not in raw
    rows = list(csv.DictReader(raw.decode().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    for row, written in zip(rows, CURVE, strict=True):
        for name in COLUMNS:
            value = written.get(name)
            assert (row[name] == "") == (value is None)
            assert value is None or float(row[name]) == value
    assert pd.read_csv(tmp_path / "curve.csv")["val_loss"].isna().tolist() == [False, True, True]


def test_weights_that_are_no_contiguous_memory_are_stored_as_they_are(tmp_path):
    net = nn.Linear(3, 2)
    net.weight = nn.Parameter(torch.arange(6.0).view(3, 2).T)
    write(tmp_path, net)
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert torch.equal(stored["weight"], torch.tensor([[0.0, 2, 4], [1, 3, 5]]))


def test_metrics_come_last_and_only_when_all_else_is_there(tmp_path):
    (tmp_path / "curve.csv").mkdir()
    with pytest.raises(OSError, match=r"curve\.csv"):
        write(tmp_path, model())
    assert not (tmp_path / "metrics.json").exists()


@pytest.mark.parametrize("where", ["config", "metrics"])
def test_json_has_no_nan(tmp_path, where):
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, model(), **{where: {"loss": math.nan}})
    assert not (tmp_path / "metrics.json").exists()


def test_speed_is_a_row_of_its_own_process(tmp_path, monkeypatch):
    """Three steps of 2, 4 and 9 ms; the median is 4."""
    now = iter([0.0, 0.002, 0.006, 0.015])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    progress = Progress(10)
    for step in (8, 9, 10):  # resumed at 7
        progress(step, 1.0)
    write_timing(tmp_path / "t.tsv", 1.31, progress.steps)
    row = pd.read_csv(tmp_path / "t.tsv", sep="\t").iloc[0]
    assert row.drop("cpu_time").to_dict() == {"s": 1.3, "steps": 3, "ms_per_step": 4}


def test_a_finished_run_started_again_has_no_speed(tmp_path):
    write_timing(tmp_path / "t.tsv", 3.0)
    row = pd.read_csv(tmp_path / "t.tsv", sep="\t").iloc[0]
    assert (row["s"], row["steps"]) == (3, 0)
    assert math.isnan(row["ms_per_step"])
