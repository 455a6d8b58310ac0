"""What the workflow and its scripts import: nothing slow, and no script in place of a package."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

from processes import ROOT, SCRIPTS

SLOW = {"matplotlib", "numpy", "pandas", "scipy", "statsmodels", "torch", "transformers"}
IMPORTED = "import json, sys\n{imports}\nprint(json.dumps(sorted(sys.modules)))"


def imports() -> list[str]:
    """The statements by which the Snakefile and its rules import this package."""
    files = [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    form = re.compile(r"^(?:import normscope|from normscope)[^(\n]*(?:\([^)]*\))?", re.MULTILINE)
    return [statement for file in files for statement in form.findall(file.read_text())]


def test_what_the_workflow_imports_loads_no_slow_package():
    statements = imports()
    assert len(statements) > 10
    code = IMPORTED.format(imports="\n".join(statements))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "normscope.config" in loaded
    assert not loaded & SLOW


def test_no_script_stands_for_an_installed_package():
    """Python looks for modules next to the script first: scripts/tabulate.py would break torch."""
    installed = {*packages_distributions(), *sys.stdlib_module_names}
    assert {path.stem for path in SCRIPTS.rglob("*.py")} & installed == set()
