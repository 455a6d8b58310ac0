"""How numbers are printed: a value stays a number until one of these formats writes it.

A format is data, so that the frame can hold a number together with its format, and every renderer
prints it in the same way.
"""

import math
from dataclasses import dataclass
from typing import Literal

DASH = "–"  # stands for a missing value
SMALLEST = 1e-6  # the least size that "significant" prints


@dataclass(frozen=True)
class Format:
    """How one number is printed.

    Args:
        style: ``decimals`` rounds to so many decimals; ``significant`` to so many digits, and
            prints values below ``SMALLEST`` as smaller than it; ``scientific`` likewise, with a
            power of ten for very small and very large values; ``general`` prints the fewest digits
            that tell a setting; ``integer`` a count; ``percent`` a share of one hundred.
        digits: decimals or digits.
        sign: whether positive numbers have a plus sign.
        log: whether the value is the natural logarithm of the number to print.
    """

    style: Literal["decimals", "significant", "scientific", "general", "integer", "percent"]
    digits: int = 3
    sign: bool = False
    log: bool = False

    def is_tiny(self, value: float) -> bool:
        """Whether a value is printed as an upper bound, ``< 0.000001``."""
        return self.style == "significant" and abs(self._printed_scale(value)) < SMALLEST

    def digits_of(self, value: float) -> str:
        """The digits of a number in ASCII, as ``float`` reads them.

        A value that ``is_tiny`` gives the bound. A percentage has no percent sign.
        """
        if self.is_tiny(value):
            return f"{SMALLEST:f}"
        shown = self._printed_scale(value)
        match self.style:
            case "decimals":
                spec = f".{self.digits}f"
            case "significant":
                spec = f".{self._decimals(shown)}f"
            case "scientific" if shown == 0:
                spec = "g"
            case "scientific" if abs(shown) < 1e-4 or abs(shown) >= 1e4:
                spec = f".{self.digits - 1}e"
            case "scientific":
                spec = f".{self._decimals(shown)}f"
            case "general":
                spec = "g"
            case _:  # integer and percent
                spec = ".0f"
        return f"{shown * 100**self._is_percent:{'+' * self.sign}{spec}}"

    def text(self, value: float | None) -> str:
        """A number as readers see it: a real minus sign, commas in thousands, a dash for NaN."""
        if value is None or math.isnan(value):
            return DASH
        digits = self.digits_of(value)
        if self.style in ("significant", "scientific") and "e" not in digits:
            whole, point, decimals = digits.partition(".")
            digits = f"{int(whole):,}" + point + decimals if abs(int(whole)) >= 1000 else digits
        elif self.style == "integer" and abs(int(digits)) >= 10_000:
            digits = f"{int(digits):,}"
        bound = "< " if self.is_tiny(value) else ""
        # powers of ten keep the hyphen that programs read
        mantissa, e, power = digits.partition("e")
        return bound + mantissa.replace("-", "−") + e + power + "%" * self._is_percent

    @property
    def _is_percent(self) -> bool:
        return self.style == "percent"

    def _printed_scale(self, value: float) -> float:
        return math.exp(value) if self.log else float(value)

    def _decimals(self, shown: float) -> int:
        return max(0, self.digits - 1 - math.floor(math.log10(abs(shown))))


GENERAL = Format("general")
INTEGER = Format("integer")
PERCENT = Format("percent")
SCIENTIFIC = Format("scientific")
SIGNIFICANT = Format("significant")


def decimals(digits: int = 3, *, sign: bool = False, log: bool = False) -> Format:
    """A format with a fixed number of decimals."""
    return Format("decimals", digits, sign, log)
