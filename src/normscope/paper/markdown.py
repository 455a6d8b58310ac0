"""The summary in Markdown."""

from normscope.paper.frame import Frame
from normscope.paper.words import escaped, placed

FIGURES = "[[figures]]"


def summary(template: str, frame: Frame) -> str:
    """The template with its words, tables and figures.

    Raises:
        KeyError: it names what the frame has not.
    """
    head, tail = template.format(**frame.texts).split(FIGURES)
    figures = [
        f"![{title}](figures/{name}.svg)\n\n*{title}.* {escaped(caption)}"
        for name, (title, caption) in frame.captions.items()
    ]
    return placed(head, frame.tables) + "\n\n".join(figures) + placed(tail, frame.tables)
