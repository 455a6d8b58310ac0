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
from normscope.pages.frame import Frame
from normscope.pages.markdown import Markdown, code, escape_word, figure, titled_table

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
    """The summary in Markdown.

    ``summary.md`` is filled with the words of the frame, those of each study by its name,
    ``cards``, ``figure("loss")`` (nothing if it is not drawn), and ``sections``:
    ``<study>/section.md`` of every study that has one, in the order of the frame, each filled with
    the words of the study and of the frame. In all of them ``table("loss")`` is a table, in a
    section a table of its study, and ``has("loss")`` says whether it has rows.

    Args:
        folder: of ``summary.md``.
        studies: folder of the studies.
        frame: the frame.

    Raises:
        Explained: a template has an error, or uses a name that the frame lacks.
    """
    # one escape for all words; tables, figures and sections are Markdown already
    templates = environment(folder, studies, finalize=escape_word)
    templates.filters["code"] = code
    sections = []
    for study, words in frame.sections.items():
        offered = _tables(frame, f"{study}.")
        known = {**frame.words, **words}
        if hidden := ", ".join(sorted(known.keys() & offered.keys())):
            raise Explained(
                f"study {study}: rename words that templates have as functions: {hidden}"
            )
        if (studies / SECTION.format(study)).is_file():
            text = fill(templates, SECTION.format(study), known | offered)
            sections.append(Markdown(text))
    drawn = {name: figure(name, *shown) for name, shown in frame.figures.items()}
    questions = frame.words.get("questions", ())
    in_questions = [one["figure"] for of in questions for one in (of, *of.get("documents", ()))]
    words = {
        **frame.words,
        **frame.sections,
        **_tables(frame, ""),
        "cards": frame.cards,
        "sections": sections,
        "figure_names": list(drawn),
        "figure": lambda name: drawn.get(name, ""),
        "figures": Markdown("\n\n".join(drawn[name] for name in drawn if name not in in_questions)),
    }
    return re.sub(r"\n{3,}", "\n\n", fill(templates, SUMMARY, words))


def card_text(folder: Path, frame: Frame) -> str:
    """The card of a norm in Markdown: ``card.md`` with the words and the tables of the frame.

    Raises:
        Explained: the template has an error, or uses a name that the frame lacks.
    """
    templates = environment(folder, finalize=escape_word)
    text = fill(templates, "card.md", {**frame.words, **_tables(frame, "")})
    return re.sub(r"\n{3,}", "\n\n", text)


def _tables(frame: Frame, prefix: str) -> dict[str, Callable[[str], object]]:
    known = {name.removeprefix(prefix): name for name in frame.tables if name.startswith(prefix)}

    def full(name: str) -> str:
        if name not in known:
            raise Explained(f"there is no table {name!r}; {suggest(name, known)}")
        return known[name]

    return {
        "table": lambda name: titled_table(full(name), frame.tables[full(name)]),
        "has": lambda name: bool(frame.tables[full(name)].rows),
    }
