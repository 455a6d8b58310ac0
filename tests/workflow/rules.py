"""The rules of the workflow by name, with the files whose code decides their results."""

from pathlib import Path

from project import ROOT

STUDIES = ROOT / "src/normscope/studies"
STAGES = {"train": "train", "probe": "probe", "tables": "make_tables"}  # by module of a study
ALL = {"claims": "claims", "frame": "pages"}  # scripts that load this module of every study

SCRIPTS = {path.stem: path for path in sorted((ROOT / "scripts").glob("*.py"))}
DRAWINGS = {f"figure_{p.stem}": p for p in sorted((ROOT / "scripts/figures").glob("*.py"))}


def _rules() -> dict[str, list[Path]]:
    of_studies = {
        f"{path.parent.name}_{stage}": [SCRIPTS[script], path]
        for stage, script in STAGES.items()
        for path in sorted(STUDIES.glob(f"*/{stage}.py"))
    }
    others = {
        name: [path, *sorted(STUDIES.glob(f"*/{ALL.get(name)}.py"))]
        for name, path in (SCRIPTS | DRAWINGS).items()
        if name not in STAGES.values()
    }
    return of_studies | others


RULES = _rules()


def same_command(rule: str) -> set[str]:
    """The rules that share the command of this one."""
    if rule in DRAWINGS:
        return set(DRAWINGS)
    return {name for name, (script, *_) in RULES.items() if script == RULES[rule][0]}
