r"""Text and numbers in TeX. Markup is escaped; characters that T1 lacks are written as [U+4E2D]."""

import re
import unicodedata

from normscope.formats import SMALLEST, Format
from normscope.pages.table import Number

DIGITS = "Zero One Two Three Four Five Six Seven Eight Nine".split()
LETTERS = dict(zip("ßæÆœŒøØłŁı", "ss ae AE oe OE o O l L i".split(), strict=True))
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho varsigma sigma"
    " tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega mu"
).split()
MATHS = dict(zip("αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩµ", GREEK, strict=True)) | dict(
    zip("×÷±·≤≥≈≠→←∞√", "times div pm cdot le ge approx ne to gets infty surd".split(), strict=True)
)
ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0304\u0306\u0327", "`'^~\"rv=uc", strict=True)
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
    **{c: f"\\{name}{{}}" for c, name in LETTERS.items()},
    **{c: f"$\\{name}$" for c, name in MATHS.items()},
    **dict(zip("–—‘’“”\u00a0−", "-- --- ` ' `` '' ~ $-$".split(), strict=True)),
    **{c: f"$^{{{power}}}$" for c, power in zip("¹²³°", ("1", "2", "3", r"\circ"), strict=True)},
    "…": r"\ldots{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
}


class Tex(str):
    """Text that is TeX already, and is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> str:
    """Escape a text, so that TeX prints it as text on one line."""
    words = re.sub(r"[ \t\r\n]+", " ", with_minus(unicodedata.normalize("NFC", text))).strip(" ")
    apart = re.sub(r"([-,'])(?=\1)", "\\1\0", words)  # no ligatures: -- is two hyphens
    return "".join("{}" if c == "\0" else _character(c) for c in apart)


def visible(text: str) -> str:
    """A text on one line, with [U+4E2D] for characters that TeX lacks."""
    normal = unicodedata.normalize("NFC", " ".join(text.split()))
    pairs = ((c, _character(c)) for c in normal)
    return "".join(tex if tex.startswith("[U+") else c for c, tex in pairs)


def with_minus(text: str) -> str:
    """Replace hyphens that are the sign of a number or of its exponent by minus signs."""
    text = text.replace("\0", "\ufffd")
    return re.sub(r"(?<![\w.)\]])-(?=\.?\d)|(?<=\d[eE])-(?=\d)", "−", text)


def _character(c: str) -> str:
    if c in CHARACTERS:
        return CHARACTERS[c]
    if " " <= c < "\x7f":
        return c
    base, *marks = unicodedata.normalize("NFD", c)
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"\\{ACCENTS[marks[0]]}{{{base}}}"
    return f"[U+{ord(c):04X}]"


def digits(value: float, form: Format) -> str:
    """The digits of a number for siunitx, which reads 1e-7, not 1e-07."""
    mantissa, e, power = form.digits_of(value).partition("e")
    return f"{mantissa}e{int(power)}" if e else mantissa


def value(number: Number) -> str:
    r"""A number as a macro gives it: ``\num{1.9}``."""
    if number.value is None:
        return "--"
    if number.format.is_tiny(number.value):
        return rf"$<$\num{{{SMALLEST:.0e}}}".replace("e-0", "e-")
    shown = digits(number.value, number.format)
    if number.format.style == "percent":
        return rf"\qty{{{shown}}}{{\percent}}"
    return rf"\num{'[retain-explicit-plus]' * shown.startswith('+')}{{{shown}}}"


def macro_name(name: str) -> str:
    r"""``\normscopeLayernormPreLoss`` for "layernorm pre loss": letters only, digits spelled."""
    spelled = re.sub(r"[0-9]", lambda m: DIGITS[int(m[0])], name)
    return r"\normscope" + "".join(part.title() for part in re.split(r"[^A-Za-z]+", spelled))
