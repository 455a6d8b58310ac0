"""A small page, and one whose every text is hostile."""

from pathlib import Path

import pandas as pd

from normscope.paper.frame import Frame
from normscope.paper.page import Look, page

REPORT = Path(__file__).parents[2] / "workflow" / "report"
LOOK = Look(*((REPORT / name).read_text() for name in ("page.html.j2", "page.css", "page.js")))
COLUMNS = "statement source published_number published corrected effect n p figure why".split()
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></title></script><svg onload=alert(1)>",
    "![x](https://example.org/x.png)",
    "[x](javascript:alert(1))",
    "a_b_c 5% A&B &lt; ]]> {{ 7 * 7 }} {% raw %} \\` $x$ [[x]]",
]
TEMPLATE = """# The title {title}

An opening of {words}.

## The ledger of claims

[[table ledger]]

## Losses of {words}

Some text, `code` and a table of the text:

| pass | formula |
| --- | --- |
| exact | g - mean(g) |

[[table loss]]

### Empty

[[table empty]]

## Figures

[[figures]]

The end.
"""


def svg(text: str = "") -> bytes:
    """A figure with a size."""
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="30pt" height="15pt" viewBox="0 0 30 15">'
    return f'{head}<rect width="30" height="15" fill="#36c"/>{text}</svg>'.encode()


def frame(words: str = "words", names: tuple[str, ...] = ("loss", "final_norm")) -> Frame:
    """Two verdicts of two documents, a table of numbers, and figures; ``words`` stands in all."""
    ledger = [
        ["One", f"Rahman, {words}", "–", "holds", "fails", words, "3 seeds", "1.00", names[0], "–"],
        [
            "Two",
            f"{words}, x",
            words,
            "–",
            "undecided",
            "−0.01",
            "25 prompts",
            "3.15e-09",
            "–",
            "–",
        ],
        ["Three", "Rahman, x", "7", "fails", "holds", "–", "–", "–", words, "–"],
        [words, words, "8", words, words, "0.3", "4 seeds", "0.2", names[-1], words],
    ]
    loss = [["LayerNorm", "1.900", "[1.892, 1.907]"], [words, "2.5", "–"]]
    return Frame(
        {"title": "of a page", "words": words},
        {
            "ledger": pd.DataFrame(ledger, columns=COLUMNS),
            "loss": pd.DataFrame(loss, columns=["arm", "loss", words]),
            "empty": pd.DataFrame(columns=["arm"]),
        },
        dict.fromkeys(names, (f"Title {words}", f"Caption {words}")),
        {},
    )


def manifest(words: str = "words") -> dict:
    """Where nothing came from."""
    return {
        "config": {},
        "config_sha256": "c0ffee",
        "dataset": {"origin": words, "sha256": {words: "da7a"}},
        "device": words,
        "packages": {"torch": words, words: "1"},
        "pretrained": {words: {"missing": None}, "absent": {"missing": "no file"}},
        "python": "3.11.7",
        "runs": {words: {}, "b": {}},
        "sources_sha256": {words: "abc123", "scripts/page.py": "def456"},
    }


def made(words: str = "words") -> str:
    """The whole page."""
    printed = frame(words)
    svgs = dict.fromkeys(printed.captions, svg())
    return page(TEMPLATE, printed, svgs, manifest(words), LOOK)
