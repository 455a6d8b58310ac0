"""The statements of data/claims/, and the configuration of the evidence."""

from processes import ROOT

from normscope.config import Config, load
from normscope.pilot import read_project
from normscope.studies.statements import load_checked
from normscope.verdicts.document import Claims

CONFIG: Config = load(read_project(ROOT, ROOT / "config/paper.yaml"))
FILES = sorted((ROOT / "data/claims").glob("*.yaml"))
DISPUTES = ROOT / "data/disputes.csv"
CLAIMS: Claims = load_checked(FILES, CONFIG.studies, disputes=DISPUTES)
