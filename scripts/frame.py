"""Rule frame: every word and number that is printed, once; summary, page and LaTeX show it."""

import json
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.readers import tables_in
from normscope.ledger.record import claim_table, ledger_table
from normscope.paper.frame import Frame, named
from normscope.paper.numbers import of_ledger, of_parts, of_texts
from normscope.schema import Strict
from normscope.studies.depth import pages as depth
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian import pages as jacobian
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.main import pages as trained
from normscope.studies.main.pages import FIGURES, Reference
from normscope.studies.pretrained import pages as pretrained
from normscope.studies.recall import pages as recall
from normscope.studies.recall.grid import Recall

RUNS = ("runs", "arms", "gain_by_arm", "recall_cells", "recall_best", "factors")
BACKWARD = ("layers", "layers_by_cell", "costs", "predictions")
DEPTH = ("by_shape", "trainability")
PRETRAINED = ("models", "by_model", "by_norm", "twins", "h25", "sensitivity")
DOCUMENTS = {  # a table of statements each
    "claims_notebook": ["notebook"],
    "claims_script": ["script"],
    "claims_pretrained": ["gpt2", "final_norm"],
    "claims_tutorial": ["tutorial"],
}


class Flags(Strict):
    """Collect what is printed."""

    claims: Path = Field(description="the ledger, claims.json")
    tables: Path = Field(description="directory of the tables of trained models")
    published: Path
    references: Path
    dataset: Path
    config: Path
    figures: Path = Field(description="directory of the figures' captions")
    recall: str = Field(description="the configuration of the decisive test as JSON")
    jacobian: Path = Field(description="directory of the tables of the norms' backward pass")
    grid: str = Field(description="the configuration of that part as JSON")
    depth: Path = Field(description="directory of the tables of signals by depth")
    depth_grid: str = Field(description="the configuration of that part as JSON")
    textbook: Path = Field(description="directory of the tables of LayerNorm from scratch")
    pretrained: Path = Field(description="directory of the tables of pretrained models")
    baseline: str
    level: float
    margin_sds: float
    out: Path


def main() -> None:
    flags = CliApp.run(Flags)
    ledger = json.loads(flags.claims.read_text())
    of_runs, backward = tables_in(flags.tables, RUNS), tables_in(flags.jacobian, BACKWARD)
    by_depth, of_models = tables_in(flags.depth, DEPTH), tables_in(flags.pretrained, PRETRAINED)
    cells, best, factors = (of_runs[k] for k in ("recall_cells", "recall_best", "factors"))
    config, meta = json.loads(flags.config.read_text()), json.loads(flags.dataset.read_text())
    scratch = tables_in(flags.textbook, ["scratch"])
    reference = Reference(flags.references.name, json.loads(flags.references.read_text()))
    published = pd.read_csv(flags.published)
    texts: dict[str, object] = {}
    tables: dict[str, pd.DataFrame] = {}
    for section in (
        trained.section(
            of_runs, published, reference, config=config, meta=meta, baseline=flags.baseline
        ),
        recall.section(Recall.model_validate_json(flags.recall), cells, best, factors),
        jacobian.section(Jacobian.model_validate_json(flags.grid), backward),
        depth.section(Depth.model_validate_json(flags.depth_grid), by_depth, scratch),
        pretrained.section(of_models),
    ):
        texts |= section.texts
        tables |= section.tables
    texts |= {
        "level": f"{flags.level:.0%}",
        "alpha": f"{1 - flags.level:.0%}",
        "margin_sds": f"{flags.margin_sds:g}",
        "claims_tests": ledger["tests"],
        "claims_count": len(ledger["claims"]),
    }
    tables["ledger"] = ledger_table(ledger)
    tables |= {name: claim_table(ledger, of) for name, of in DOCUMENTS.items()}
    captions = {
        name: (title, (flags.figures / f"{name}.txt").read_text().strip())
        for name, title in FIGURES.items()
    }
    words = {name: str(value) for name, value in texts.items()}
    of = of_runs | backward | by_depth | of_models
    numbers = named([*of_texts(words), *of_parts(of), *of_ledger(ledger)])
    Frame(words, tables, captions, numbers).write(flags.out)


if __name__ == "__main__":
    report(main)
