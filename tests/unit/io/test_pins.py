"""Which pins decide a script's results."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest
from packaging.utils import canonicalize_name
from processes import ROOT

from normscope.io.pins import pinned
from normscope.io.provenance import closure

CONSTRAINTS = ROOT / "constraints.txt"


def pins(script: str, *modules: str) -> dict[str, str]:
    files = [ROOT / "scripts" / f"{script}.py", *(ROOT / "src/normscope" / m for m in modules)]
    line = pinned(closure(*files), CONSTRAINTS)
    return dict(pin.split("==") for pin in line.split())


@pytest.mark.parametrize("script", ["train", "residual_gain", "dataset"])
def test_every_package_that_a_script_loads_is_among_its_pins(script):
    """Python itself says what is imported; the syntax trees and metadata must have said so."""
    code = f"import runpy, sys; runpy.run_path('scripts/{script}.py'); print(*sys.modules)"
    env = {"PYTHONPATH": "src", "PATH": ""}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    tops = {name.partition(".")[0] for name in process.stdout.split()}
    installed = packages_distributions()
    loaded = {canonicalize_name(d) for top in tops for d in installed.get(top, [])} - {"normscope"}
    # torch and its networkx import these if they are installed
    known = {
        canonicalize_name(line.split("==")[0]) for line in CONSTRAINTS.read_text().splitlines()[1:]
    }
    optional = {"pydot", "tqdm"}
    assert loaded & known - optional <= pins(script).keys()
    assert len(loaded) >= 4


def test_pins_are_those_of_the_file(tmp_path):
    script, constraints = tmp_path / "s.py", tmp_path / "c.txt"
    script.write_text("def f():\n    if f:\n        from tqdm.auto import tqdm\n")
    constraints.write_text("# head\nTQDM==9.8 # why\nNumPy==1.2\n\n")
    assert pinned([script], constraints) == "tqdm==9.8"
    other = tmp_path / "other.py"
    other.write_text("import json, numpy\n")
    assert pinned([other], constraints) == "numpy==1.2"
    third = tmp_path / "third.py"
    third.write_text("import requests\n")
    with pytest.raises(ValueError, match=re.escape(f"{third} imports requests, which")):
        pinned([third], constraints)
