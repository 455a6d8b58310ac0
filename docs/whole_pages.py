"""Pages of the site that are whole files: the statements of the evidence, and the kept cards."""

import json
from pathlib import Path

import lesson

from normscope.config import load
from normscope.io.files import write_text
from normscope.nn.arms import LABELS
from normscope.pages import figures
from normscope.pages.drawing import Look
from normscope.pages.frame import Figure, collect
from normscope.pages.page import page
from normscope.pages.template import summary_text
from normscope.pilot import read_project
from normscope.studies.card.pages import html, kept_cards
from normscope.studies.main.pages import scale
from normscope.studies.stage import FOLDER
from normscope.studies.statements import sources
from normscope.verdicts.findings import load as load_findings
from normscope.verdicts.verdict import read as read_verdicts

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "workflow/report"
STATEMENTS = "summary.html"  # with an anchor per statement: #statement-rmsnorm
MARK = "<!-- cards -->"
PAGE = "gallery"  # the page with the mark
NOTE = (
    "These values come from evidence/manifest.json, which also has the SHA-256 of every source. "
    "evidence/run.json says when and where each study ran."
)


def filled(text: str) -> str:
    """A page with the mark replaced by links to the cards.

    Raises:
        Explained: The evidence has no cards.
    """
    if MARK not in text:
        return text
    norms = kept_cards(evidence(), look()).config.norm
    links = (f'- <a href="card/{norm}.html">{LABELS[norm]}</a>' for norm in norms)
    return text.replace(MARK, "\n".join(links))


def look() -> Look:
    """How figures look."""
    config = lesson.config()
    return Look(**config.figures.model_dump(), level=config.level)


def evidence() -> Path:
    """The folder of the evidence."""
    return lesson.result("claims.json").parent


def statements() -> str:
    """The summary of the evidence, with the kept figures and without the sections of studies.

    The evidence lacks some of the tables that these sections show.
    """
    folder = evidence()
    manifest = json.loads((folder / "manifest.json").read_text())
    run = json.loads((folder / "run.json").read_text())
    config = load(read_project(ROOT, ROOT / run["configuration"]))
    entries = figures.load(FOLDER, config.studies)
    captions = json.loads((folder / "figures/captions.json").read_text())
    svgs = {name: (folder / f"figures/{name}.svg").read_bytes() for name in captions}
    verdicts = read_verdicts(folder / "claims.json")
    frame = collect(
        {},
        verdicts,
        {
            name: Figure(entry.heading(verdicts.words), captions[name])
            for name, entry in entries.items()
            if name in captions
        },
        findings=load_findings(ROOT / "data/findings.yaml", verdicts.statements),
        scale=scale(config.main),
        traces=sources(verdicts.entries, config.studies),
    )
    text = summary_text(TEMPLATES, FOLDER, frame)
    return page(TEMPLATES, text, svgs, {**manifest, "note": NOTE})


def write(out: Path) -> None:
    """Write the statements and the cards to a built site."""
    write_text(out / STATEMENTS, statements())
    cards = kept_cards(evidence(), look())
    (out / "card").mkdir(exist_ok=True)
    for norm in cards.config.norm:
        write_text(out / f"card/{norm}.html", html(cards, norm, TEMPLATES))
