"""A reading of a statement: one way to understand the document's words, and its test."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from normscope.errors import Explained
from normscope.io.names import Key
from normscope.schema import PositiveFloat, Strict
from normscope.verdicts.comparison import Contrast
from normscope.verdicts.wording import check_fields

Word = Annotated[str, Field(min_length=1)]
BY_T = ("t", "equivalence")  # the tests of a mean by Student's t
BEYOND = "the {centre} is estimated beyond the margin, and significantly beyond {bound:g}"
# the keys that decide a verdict; the others are words
DECISIVE = {
    *("test", "direction", "holds_in", "refutable"),
    *("bound", "margin", "scale", "unit", "contrast"),
}


class Quoted(Strict):
    """Words of a document, and the part of it with which they were compared."""

    quote: Word | None = Field(
        default=None, description="the words of the document that support this reading"
    )
    compared_with: Word | None = Field(
        default=None,
        description="the part of the document with which the quote was compared word by word; "
        "usually given for the whole document",
    )
    uncompared: Word | None = Field(
        default=None,
        description="in place of `compared_with`, why the quote could not be compared; the "
        "statement is marked on the page, and is not counted",
    )

    @model_validator(mode="after")
    def _is_compared_or_not(self) -> Self:
        if self.compared_with is not None and self.uncompared is not None:
            raise ValueError("compared_with and uncompared: give one")
        return self


class Reading(Quoted):
    """One way to understand a statement, and its test.

    The quantity is compared with ``bound``. ``margin`` is the smallest relevant difference from it
    (on a logarithmic scale a factor): with ``direction: within``, the reading is that the quantity
    lies within the margin; with ``greater`` and ``less``, that it differs by more: the estimate is
    beyond the margin, and significantly beyond the bound. A test that a
    contrast cannot express is a function in the study's module ``claims``, decorated with
    ``@claim`` and the statement's key.
    """

    reach: Key | None = Field(
        default=None,
        description="the reading that this one asks of models of another size, training or text; "
        "it has the keys of that reading that it does not give, and is not asked in a run without "
        "such models",
    )
    restated: Word | None = Field(default=None, description="what is tested, in plain words")
    off_label: Word | None = Field(
        default=None,
        description="how this test differs from the regime that the authors tested; without it, "
        "the test is in that regime",
    )
    quantity: Word
    test: Literal["t", "equivalence", "sign_flip", "median", "permutation", "fact", "none"]
    criterion: Word = Field(description="the test in words, with the fields {bound} and {margin}")
    direction: Literal["greater", "less", "within"] | None = None
    holds_in: Literal["all", "any"] = Field(
        default="all", description="whether it is about all of its cases or about any of them"
    )
    refutable: bool = Field(
        default=True,
        description="false where it says that something exists: the cases can show it, but they "
        "cannot show that it does not exist elsewhere",
    )
    bound: Annotated[float, Field(allow_inf_nan=False)] | None = None
    bound_because: Word | None = Field(
        default=None, description="the reason for the bound, unless it is that of no difference"
    )
    margin: PositiveFloat | None = None
    margin_because: Word | None = Field(default=None, description="the reason for the margin")
    scale: Literal["linear", "log"] = "linear"
    unit: Literal["model", "prompt", "family", "formula"]
    contrast: Contrast | None = None

    @model_validator(mode="after")
    def _test_is_whole(self) -> Self:
        is_within = self.direction == "within"
        if self.test == "equivalence" and not is_within:
            raise ValueError("test: equivalence goes with direction: within")
        if is_within and self.test not in ("equivalence", "median"):
            raise ValueError("direction: within goes with test: equivalence, or test: median")
        if is_within and self.margin is None:
            raise ValueError("direction: within needs a margin")
        if (self.margin is None) != (self.margin_because is None):
            raise ValueError("margin and margin_because go together: a margin needs a reason")
        if self.test in ("permutation", "none") and (self.bound, self.margin) != (None, None):
            raise ValueError(f"test: {self.test} takes no bound and no margin")
        if not self.refutable and (self.holds_in != "any" or self.test == "fact"):
            raise ValueError("refutable: false goes with holds_in: any, and not with a fact")
        if is_within and self.bound is None:
            raise ValueError("direction: within needs a bound")
        if self.test in ("sign_flip", "median") and self.direction is None:
            raise ValueError(f"test: {self.test} needs a direction")
        if self.test == "sign_flip" and self.margin is not None:
            raise ValueError("test: sign_flip takes no margin: outcomes are not symmetric about it")
        if self.scale == "log" and self.bound is not None and self.bound <= 0:
            raise ValueError(f"bound: {self.bound} has no logarithm")
        if self.scale == "log" and self.margin is not None and self.margin <= 1:
            raise ValueError(f"margin: a factor must be above 1, got {self.margin}")
        is_of_no_difference = self.bound in (None, 1 if self.scale == "log" else 0)
        if not is_of_no_difference and self.bound_because is None:
            raise ValueError("a bound other than 0 (with scale: log 1) needs bound_because")
        return self

    @model_validator(mode="after")
    def _contrast_fits_the_test(self) -> Self:
        c = self.contrast
        if c is None:
            return self
        if self.test in ("permutation", "none"):
            raise ValueError(f"test: {self.test} needs a function, not a contrast")
        if self.bound is None:
            raise ValueError("contrast: needs a bound to be compared with")
        if self.direction is None:
            raise ValueError("contrast: needs a direction")
        if (c.over is not None) and self.scale != "log":
            raise ValueError("contrast.over: a ratio needs scale: log")
        if c.less is not None and self.scale == "log":
            raise ValueError("contrast.less: a difference has no logarithm: give over, or no scale")
        if self.test == "fact" and (c.other or c.each or c.at or c.best or c.needs or c.sentence):
            raise ValueError(
                "contrast: a fact has only table, measure and cells: every row is tested"
            )
        unit = "formula" if self.test == "fact" else "model"
        if self.unit != unit:
            counted = "a fact" if self.test == "fact" else "a contrast, whose rows are models"
            raise ValueError(f"unit: {self.unit} does not fit {counted}: give {unit}")
        return self

    @model_validator(mode="after")
    def _criterion_can_be_filled_in(self) -> Self:
        try:
            check_fields(self.criterion, {"bound": self.bound, "margin": self.margin})
        except ValueError as e:
            raise ValueError(f"criterion: {e}") from None
        return self

    @property
    def asks(self) -> str:
        """The criterion with its numbers, and what a margin is compared with."""
        words = self.criterion.format(bound=self.bound, margin=self.margin)
        if self.margin is None or self.direction == "within":
            return words
        centre = "median" if self.test == "median" else "mean"
        return f"{words} ({BEYOND.format(centre=centre, bound=self.bound)})"

    def agrees_with(self, value: float) -> bool:
        """Whether the quantity is where the reading says, beyond the margin if it has one."""
        low, high = self.margins
        if self.direction == "within":
            return low <= value <= high
        return value > high if self.direction == "greater" else value < low

    @property
    def margins(self) -> tuple[float, float]:
        """The bound minus and plus the margin, which is a factor on a logarithmic scale."""
        if self.scale == "log":
            margin = self.margin or 1.0
            return self.limit / margin, self.limit * margin
        margin = self.margin or 0.0
        return self.limit - margin, self.limit + margin

    @property
    def limit(self) -> float:
        """The bound.

        Raises:
            Explained: The reading has none.
        """
        if self.bound is None:
            raise Explained(f"{self.quantity!r} has no bound: give its test one")
        return self.bound
