r"""Text and numbers as TeX has them: all that is markup or no letter of T1 is written out."""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal

NAMES = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
DIGITS = {str(digit): name for digit, name in enumerate(NAMES)}
NUMBER = re.compile(
    r"([-−+]?)((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE]([-−+]?\d+))?", re.ASCII
)
CHARACTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",
    **{c: f"\\{c}" for c in "_%&#${}"},
    "−": "$-$",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "\u00a0": "~",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "¹": "$^{1}$",
    "²": "$^{2}$",
    "³": "$^{3}$",
    "°": r"$^{\circ}$",
    "§": r"\S{}",
    "©": r"\copyright{}",
}
MATHS = dict(
    zip("×÷±·≤≥≈≠→←∞√", "times div pm cdot le ge approx ne to gets infty surd".split(), strict=True)
)
ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0304\u0306\u0327", "`'^~\"rv=uc", strict=True)
)
GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (FINAL )?(\w+)")
GREEK_NAMES = set(
    "ALPHA BETA GAMMA DELTA EPSILON ZETA ETA THETA IOTA KAPPA LAMDA MU NU XI OMICRON PI RHO SIGMA"
    " TAU UPSILON PHI CHI PSI OMEGA".split()
)
OF_GREEK = set("GAMMA DELTA THETA XI PI SIGMA UPSILON PHI PSI OMEGA LAMDA".split())
OF_LATIN = {"ETA": "H", "RHO": "P", "CHI": "X"}  # the others begin as they are named


class Tex(str):
    """Text in TeX already, which is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> str:
    """Text that TeX sets as it stands; what it has no character for as [U+4E2D]."""
    words = re.sub(r"[ \t\r\n]+", " ", with_minus(unicodedata.normalize("NFC", text))).strip(" ")
    apart = re.sub(r"([-,'])(?=\1)", "\\1\0", words)  # no ligatures: -- is two hyphens
    return "".join("{}" if c == "\0" else _character(c) for c in apart)


def visible(text: str) -> str:
    """Text in which what TeX has no character for is written out, as it is set."""
    known = (_character(c) for c in unicodedata.normalize("NFC", text))
    pairs = zip(unicodedata.normalize("NFC", text), known, strict=True)
    return "".join(tex if tex.startswith("[U+") else c for c, tex in pairs)


def with_minus(text: str) -> str:
    """A hyphen that is the sign of a number, or of its exponent, as a minus sign."""
    text = text.replace("\0", "\ufffd")
    return re.sub(r"(?<![\w.)\]])-(?=\.?\d)|(?<=\d[eE])-(?=\d)", "−", text)


def _character(c: str) -> str:
    if c in CHARACTERS:
        return CHARACTERS[c]
    if c in MATHS:
        return f"$\\{MATHS[c]}$"
    if " " <= c < "\x7f":
        return c
    base, *marks = unicodedata.normalize("NFD", c)
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"\\{ACCENTS[marks[0]]}{{{base}}}"
    return _greek(c) or f"[U+{ord(c):04X}]"


def _greek(c: str) -> str | None:
    letter = GREEK.fullmatch(unicodedata.name("μ" if c == "µ" else c, ""))
    if not letter:
        return None
    case, final, name = letter.groups()
    command = {"LAMDA": "lambda", "OMICRON": "mathit{o}"}.get(name, name.lower())
    if name not in GREEK_NAMES:
        return None
    if case == "SMALL":
        return f"$\\{'var' if final else ''}{command}$"
    if name in OF_GREEK:
        return f"$\\{command.title()}$"
    return f"$\\mathrm{{{OF_LATIN.get(name, name[0])}}}$"


def plain(text: str) -> str | None:
    """A number as siunitx reads it, or None: 1,234 as 1234, 6.75e-06 as 6.75e-6."""
    number = NUMBER.fullmatch(text)
    if not number:
        return None
    sign, digits, exponent = number.groups()
    power = f"e{int(exponent.replace('−', '-'))}" if exponent else ""
    return sign.replace("−", "-") + digits.replace(",", "") + power


def value(text: str) -> str:
    """A value as a macro gives it."""
    number, percent = plain(text), plain(text.removesuffix("%"))
    if number is not None:
        return rf"\num{'[retain-explicit-plus]' * number.startswith('+')}{{{number}}}"
    if percent is not None:
        return rf"\qty{{{percent}}}{{\percent}}"
    limit = plain(text[1:].strip()) if text[:1] in {"<", ">"} else None
    if limit is not None:
        tiny = abs(Decimal(limit)) < Decimal("1e-4") and Decimal(limit) != 0
        return rf"${text[0]}$\num{{{format(Decimal(limit), 'e') if tiny else limit}}}"
    return escaped(text)


def macro_name(name: str) -> str:
    r"""``\normscopeLayernormPreLoss`` of "layernorm pre loss": letters only, digits spelled."""
    parts = re.split(r"[^A-Za-z0-9\x80-\U0010ffff]+", name)
    ascii_only = (re.sub(r"[^\x00-\x7f]", lambda m: f"u{ord(m[0]):x}", part) for part in parts)
    return r"\normscope" + "".join(_spelled(part).title() for part in ascii_only)


def _spelled(letters: Iterable[str]) -> str:
    return "".join(DIGITS.get(c, c) for c in letters)
