"""Templates of Jinja2, and the summary's text.

Unknown names are errors. Values are text, which is escaped for the language of the template.
"""

import difflib
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError, UndefinedError

from normscope.errors import Explained
from normscope.paper.frame import Frame
from normscope.paper.markdown import FIGURES, Markdown, escaped_word, reference

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


def open_template(folder: Environment, name: str) -> Template:
    """A template by its file name.

    Raises:
        Explained: it is missing, or has a syntax error.
    """
    try:
        return folder.get_template(name)
    except TemplateSyntaxError as e:
        raise Explained(f"{e.name}, line {e.lineno}: {e.message}") from e
    except TemplateNotFound as e:
        raise Explained(f"{e.name} is missing among the templates: restore it") from e


def fill(template: Template, words: Mapping[str, Any]) -> str:
    """A template with its words.

    Raises:
        Explained: the template uses an unknown name; the error has file, line and nearest name.
    """
    try:
        return template.render(words)
    except UndefinedError as e:
        name = re.search(r"'(\w+)' is undefined|has no attribute '(\w+)'", str(e))
        near = nearest(name[1] or name[2], _names(words)) if name else ""
        raise Explained(f"{_where(template, e)}: {e.message}{near}") from e
    except (TemplateError, TypeError, LookupError) as e:
        raise Explained(f"{_where(template, e)}: {e}") from e
    except Explained as e:
        raise Explained(f"{_where(template, e)}: {e}") from e


def _names(words: Mapping[str, Any]) -> list[str]:
    """The names of all words, including those of the studies."""
    inner = (vars(w) for w in words.values() if isinstance(w, SimpleNamespace))
    return [*words, *(name for names in inner for name in names)]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the closest known name; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _where(template: Template, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == template.filename]
    return f"{template.name}, line {lines[-1] if lines else '?'}"


def summary_text(folder: Path, studies: Path, frame: Frame) -> str:
    """The summary in Markdown, with marks where tables and figures stand.

    ``summary.md`` is filled with the words of the frame, those of each study by its name, and
    ``sections``: ``<study>/section.md`` of every study that has one, in the order of the frame,
    each filled with the words of the study and of the frame. In all of them ``table("loss")`` is a
    table, in a section a table of its study; ``has("loss")`` says whether it has rows.

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
        if (studies / SECTION.format(study)).is_file():
            template = open_template(templates, SECTION.format(study))
            text = fill(template, {**frame.words, **words, **_tables(frame, f"{study}.")})
            sections.append(Markdown(text))
    by_study = {study: SimpleNamespace(**words) for study, words in frame.sections.items()}
    words = {**frame.words, **by_study, **_tables(frame, ""), "sections": sections}
    text = fill(open_template(templates, SUMMARY), words | {"figures": reference(FIGURES)})
    return re.sub(r"\n{3,}", "\n\n", text)


def _tables(frame: Frame, prefix: str) -> dict[str, Callable[[str], object]]:
    known = {name.removeprefix(prefix): name for name in frame.tables if name.startswith(prefix)}

    def full(name: str) -> str:
        if name not in known:
            raise Explained(f"there is no table {name!r}{nearest(name, known)}")
        return known[name]

    return {
        "table": lambda name: reference(full(name)),
        "has": lambda name: bool(frame.tables[full(name)].rows),
    }
