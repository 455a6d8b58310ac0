"""The rules of the workflow by name, with the files whose code decides their results."""

from fnmatch import fnmatch

from project import ROOT

from normscope.config import Config
from normscope.pages.figures import load
from normscope.pilot import TRAINED as TRAINED_STUDIES

FOLDER = ROOT / "src/normscope/studies"
STUDIES = [name for name in Config.model_fields if (FOLDER / name).is_dir() and name != "card"]
STAGES = {"train": "train", "probe": "probe", "tables": "make_tables"}  # script by end of the rule
MODULES = {"train": "train", "probe": "probe", "tables": "tabulate"}  # of a study, in the same way
ALL = {"frame": "pages", "metrics": "tables"}  # modules of every study
TRAINED = {  # rules of DVC's stage `runs`
    *("dataset", "main_train", "recall_train", "jacobian_train", "depth_train"),
    *("literature_train", "pretrained_probe"),
}

SCRIPTS = {path.stem: path for path in sorted((ROOT / "scripts").glob("*.py"))}
RULES = {
    f"{path.parent.name}_{stage}": [SCRIPTS[script], path]
    for stage, script in STAGES.items()
    for path in FOLDER.glob(f"*/{MODULES[stage]}.py")
}
RULES |= {
    f"{study}_train": [SCRIPTS["train"], FOLDER / study / "train.py"] for study in TRAINED_STUDIES
}
RULES |= {
    f"figure_{name}": [SCRIPTS["draw"], FOLDER / figure.study / f"figures/{name}.py"]
    for name, figure in load(FOLDER, STUDIES).items()
    if figure.needs is None  # test projects do not have what others need
}
RULES |= {
    name: [path, *(FOLDER / study / f"{ALL[name]}.py" for study in STUDIES if name in ALL)]
    for name, path in SCRIPTS.items()
    if name not in {*STAGES.values(), "draw"}
}
RULES = {rule: [path for path in files if path.is_file()] for rule, files in RULES.items()}


def records(inputs: str) -> list[str]:
    """The records of code among the inputs of a job, as ``--detailed-summary`` lists them."""
    return [path for path in inputs.split(",") if fnmatch(path, "results/code/*.txt")]
