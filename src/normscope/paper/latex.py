"""The frame for authors: tables, a macro for every number, a small paper that shows them."""

from collections.abc import Mapping

from normscope.errors import Explained
from normscope.paper.frame import Frame
from normscope.paper.tex import escaped, macro_name, value
from normscope.paper.textable import breakable, tabular

LEDGER = ["statement", "source", "published", "corrected", "effect", "n", "p (Holm)", "why"]
TITLES = {  # of the tables, in the paper's order
    "loss": "Validation loss of the trained models",
    "gain": "Residual gain of the trained models",
    "published": "Published beside corrected",
    "recall": "The decisive test, task {}",
    "best": "The decisive test: learning rates",
    "factors": "What each factor of a norm does",
    "jacobian": "The backward pass of norms, layer by layer",
    "surrogates": "What a surrogate backward pass costs",
    "predictions": "What predicts the cost: rank correlations",
    "depth": "Signal and gradient, block by block",
    "trainability": "What a short training reaches",
    "scratch": "LayerNorm from scratch",
    "models": "Pretrained models that are measured here",
    "pretrained": "Residual gain of pretrained models: the last block",
    "entropy": "Residual gain and the entropy of the prediction",
    "norms": "LayerNorm against RMSNorm",
    "twins": "Base and fine-tuned models",
    "h25": "H25: heads over head dimension",
    "sensitivity": "What the gain of pretrained models depends on",
}
SENTENCES = (  # with numbers by name; one is left out if the frame has not all of its numbers
    "The corpus has <text characters> distinct characters: <text train> tokens to train on and"
    " <text val> to validate.",
    "Models of <text n_layer> blocks and width <text n_embd> were trained for <text steps> steps.",
    "LayerNorm in pre-norm placement reaches a validation loss of <layernorm pre loss>,"
    " RMSNorm <rmsnorm pre loss>.",
    "Of <claims> statements, <claims holds> hold, <claims fails> fail and <claims undecided> are"
    " undecided, with all <claims tests> tests held at <text alpha> together.",
)
PREAMBLE = r"""% A small paper that shows all of normscope's tables, numbers and figures.
% pdflatex example.tex, three times
\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{lmodern}
\usepackage{array,booktabs,graphicx,longtable,microtype,siunitx}
\usepackage[hidelinks]{hyperref}
% a line of 170 mm, the width of the figures
\setlength{\textwidth}{170mm}\setlength{\oddsidemargin}{\dimexpr 20mm-1in}
\setlength{\textheight}{245mm}\setlength{\topmargin}{\dimexpr 18mm-1in}
\setlength{\headheight}{0pt}\setlength{\headsep}{0pt}
\setlength{\belowcaptionskip}{4pt}
\setlength{\parindent}{0pt}\setlength{\parskip}{1ex plus 0.5ex}
\makeatletter
\newcommand{\what}[1]{\def\@captype{#1}} % a caption outside of a float, which stays in its place
\makeatother
\input{numbers}
\providecommand{\normscopecaption}{} % what stands above a long table
\title{normscope: all tables, numbers and figures}
\author{}
\date{}
\begin{document}
\raggedright
\maketitle
"""


def files(frame: Frame) -> dict[str, str]:
    """All files by their paths."""
    shown = tables(frame)
    return {
        "numbers.tex": numbers(frame.numbers),
        "claims.tex": tabular(frame.tables["ledger"][LEDGER], breaks=True),
        "example.tex": example(frame, shown),
        **{f"tables/{name}.tex": text for name, text in shown.items()},
    }


def tables(frame: Frame) -> dict[str, str]:
    """The tables but those of statements, in the paper's order."""
    order = list(TITLES)
    names = [n for n in frame.tables if n != "ledger" and not n.startswith("claims_")]
    names.sort(key=lambda n: (order.index(kind(n)) if kind(n) in TITLES else len(order), n))
    return {name: tabular(frame.tables[name]) for name in names}


def kind(name: str) -> str:
    """What a table is one of: recall_copy is one of recall."""
    return "recall" if name.startswith("recall_") else name


def title(name: str) -> str:
    """Of a table."""
    return TITLES.get(kind(name), name).format(name.removeprefix("recall_"))


def numbers(values: Mapping[str, str]) -> str:
    r"""A macro for every number, as ``\newcommand{\normscopeClaims}{\num{38}}``.

    Raises:
        Explained: two names are one in letters.
    """
    found: dict[str, str] = {}
    lines = ["% every number of the summary; needs siunitx"]
    for name, text in values.items():
        macro = macro_name(name)
        if macro in found:
            raise Explained(
                f"the numbers {found[macro]!r} and {name!r} are both {macro} in LaTeX, whose names"
                " have letters only; call one of them by another name"
            )
        found[macro] = name
        lines.append(rf"\newcommand{{{macro}}}{{{value(text)}}}")
    return "\n".join(lines)


def example(frame: Frame, shown: Mapping[str, str]) -> str:
    """A small paper: sentences with macros, the ledger, tables, figures, and a list of macros."""
    parts = [PREAMBLE, r"\section{Numbers in sentences}", *sentences(frame.numbers)]
    parts += [r"\section{The ledger of claims}", _long("claims", "The ledger of claims")]
    parts += [r"\section{Tables}"]
    for name, text in shown.items():
        is_long = r"\begin{longtable}" in text
        parts.append((_long if is_long else _short)(f"tables/{name}", title(name)))
    parts += [r"\section{Figures}", *(_figure(n, *words) for n, words in frame.captions.items())]
    parts += [r"\clearpage\appendix\section{All macros}", _list_of(frame.numbers)]
    return "\n\n".join([*parts, r"\end{document}"])


def sentences(values: Mapping[str, str]) -> list[str]:
    """Those whose numbers are there, with macros in them."""
    found = []
    for sentence in SENTENCES:
        text, is_there = sentence, True
        for part in sentence.split("<")[1:]:
            name = part.partition(">")[0]
            is_there &= name in values
            text = text.replace(f"<{name}>", macro_name(name) + "{}")
        found += [text] if is_there else []
    return found


def _short(path: str, words: str) -> str:
    return rf"""\begin{{minipage}}{{\textwidth}}
\what{{table}}\caption{{{breakable(words)}}}
\centering
\input{{{path}}}
\end{{minipage}}\par\bigskip"""


def _long(path: str, words: str) -> str:
    return rf"""\renewcommand{{\normscopecaption}}{{\caption{{{breakable(words)}}}\\}}
\input{{{path}}}"""


def _figure(name: str, heading: str, caption: str) -> str:
    return rf"""\begin{{minipage}}{{\textwidth}}
\what{{figure}}\includegraphics[width=\textwidth]{{figures/{name}.pdf}}
\caption[{{{escaped(heading)}}}]{{\raggedright\small \textbf{{{breakable(heading)}.}}
{breakable(caption)}}}
\end{{minipage}}\par\bigskip"""


def _list_of(values: Mapping[str, str]) -> str:
    rows = (_macro(name, text) for name, text in values.items())
    return r"""\begingroup\footnotesize
\begin{longtable}{>{\raggedright\arraybackslash}p{0.5\linewidth}
  >{\raggedright\arraybackslash}p{0.28\linewidth}
  >{\raggedright\arraybackslash}p{0.13\linewidth}}
\toprule macro & name & value \\ \midrule \endhead
\bottomrule \endfoot
""" + "\n".join([*rows, r"\end{longtable}\endgroup"])


def _macro(name: str, text: str) -> str:
    macro = macro_name(name)
    number = macro + "{}" if "\\" in value(text) and len(text) < 18 else breakable(text, 5)
    shown = r"\allowbreak{}".join(macro[1:][i : i + 9] for i in range(0, len(macro) - 1, 9))
    return rf"\texttt{{\textbackslash {shown}}} & {{}}{breakable(name)} & {number} \\"
