"""Templates of Jinja2, and the summary's text.

Unknown names are errors. Values are text, which is escaped for the language of the template.
"""

import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from normscope.errors import Explained, suggest
from normscope.pages.figures import FOREST
from normscope.pages.frame import Frame
from normscope.pages.markdown import CARDS, FIGURES, PLOTS, Markdown, escaped_word, reference

SUMMARY, SECTION = "summary.md", "{}/section.md"


def environment(*folders: Path, **options: Any) -> Environment:
    """The templates of some folders, by their paths below these."""
    return Environment(  # noqa: S701 - callers pass the escape of their language
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )


def fill(templates: Environment, name: str, words: Mapping[str, Any]) -> str:
    """The text of a template with these words.

    Raises:
        Explained: the template is missing, has a syntax error, or uses an unknown name; with its
            file and line.
    """
    try:
        return templates.get_template(name).render(words)
    except (TemplateError, TypeError, LookupError, Explained) as e:
        frames = traceback.extract_tb(e.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename.endswith(name)]
        where = getattr(e, "lineno", lines[-1] if lines else "?")
        raise Explained(f"{name}, line {where}: {e}") from e


def summary_text(folder: Path, studies: Path, frame: Frame) -> str:
    """The summary in Markdown, with marks where tables and figures stand.

    ``summary.md`` is filled with the words of the frame, those of each study by its name, and
    ``sections``: ``<study>/section.md`` of every study that has one, in the order of the frame,
    each filled with the words of the study and of the frame. In both of them ``table("loss")`` is
    a table, in a section a table of its study, and ``has("loss")`` says whether it has rows. In the
    summary ``cards("key")`` are those of a document, and ``plots("one other")`` the small plots of
    statements.

    Args:
        folder: of ``summary.md``.
        studies: folder of the studies.
        frame: the frame.

    Raises:
        Explained: a template has an error, or uses a name that the frame lacks.
    """
    # one escape for all words; marks and sections are Markdown already
    templates = environment(folder, studies, finalize=escaped_word)
    sections = []
    for study, words in frame.sections.items():
        offered = _tables(frame, f"{study}.")
        known = {**frame.words, **words}
        if hidden := ", ".join(sorted(known.keys() & offered.keys())):
            raise Explained(
                f"study {study}: rename words that templates have as functions: {hidden}"
            )
        name = SECTION.format(study)
        if (studies / name).is_file():
            sections.append(Markdown(fill(templates, name, known | offered)))
    words = {**frame.words, **frame.sections, **_tables(frame, "")}
    words |= {
        "sections": sections,
        "forest": reference(FOREST) if FOREST in frame.figures else "",
        "figures": reference(FIGURES),
        "cards": lambda document: reference(f"{CARDS}{document}"),
        "plots": lambda keys: reference(f"{PLOTS}{keys}"),
    }
    text = fill(templates, SUMMARY, words)
    return re.sub(r"\n{3,}", "\n\n", text)


def card_text(folder: Path, frame: Frame) -> str:
    """The card of a norm in Markdown: ``card.md`` with the words and the tables of the frame.

    Raises:
        Explained: the template has an error, or uses a name that the frame lacks.
    """
    templates = environment(folder, finalize=escaped_word)
    text = fill(templates, "card.md", {**frame.words, **_tables(frame, "")})
    return re.sub(r"\n{3,}", "\n\n", text)


def _tables(frame: Frame, prefix: str) -> dict[str, Callable[[str], object]]:
    known = {name.removeprefix(prefix): name for name in frame.tables if name.startswith(prefix)}

    def full(name: str) -> str:
        if name not in known:
            raise Explained(f"there is no table {name!r}; {suggest(name, known)}")
        return known[name]

    return {
        "table": lambda name: reference(full(name)),
        "has": lambda name: bool(frame.tables[full(name)].rows),
    }
