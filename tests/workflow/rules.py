"""The rules of the workflow by name, with the files whose code decides their results."""

from pathlib import Path

from project import ROOT

STUDIES = ROOT / "src/normscope/studies"
STAGES = {"train": "train", "probe": "probe", "tables": "make_tables"}  # script by end of the rule
MODULES = {"train": "train", "probe": "probe", "tables": "tabulate"}  # of a study, in the same way
ALL = {  # scripts that load this module of every study
    "claims": "claims",
    "frame": "pages",
    "metrics": "tables",
}

SCRIPTS = {path.stem: path for path in sorted((ROOT / "scripts").glob("*.py"))}
DRAWINGS = {
    f"figure_{path.stem}": [SCRIPTS["draw"], path]
    for path in sorted(STUDIES.glob("*/figures/[!_]*.py"))
}


def _rules() -> dict[str, list[Path]]:
    of_studies = {
        f"{path.parent.name}_{stage}": [SCRIPTS[script], path]
        for stage, script in STAGES.items()
        for path in sorted(STUDIES.glob(f"*/{MODULES[stage]}.py"))
    }
    others = {
        name: [path, *sorted(STUDIES.glob(f"*/{ALL.get(name)}.py"))]
        for name, path in SCRIPTS.items()
        if name not in {*STAGES.values(), "draw"}
    }
    return of_studies | DRAWINGS | others


RULES = _rules()


def same_command(rule: str) -> set[str]:
    """The rules that share the command of this one."""
    return {name for name, (script, *_) in RULES.items() if script == RULES[rule][0]}
