"""Wheels in a local folder, the only one in which pip then looks."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from normscope.io.corpus import WheelSource


def wheel_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, content: bytes
) -> WheelSource:
    """Build a wheel of version 1.0 with one file, and the source that refers to it."""
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/{file}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    pip = {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(folder)}
    for key, value in pip.items():
        monkeypatch.setenv(f"PIP_{key}", value)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    member = f"{name}/{file}"
    return WheelSource(kind="wheel", requirement=f"{name}==1.0", sha256=sha256, member=member)
