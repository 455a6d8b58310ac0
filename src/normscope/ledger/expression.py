"""Arithmetic of columns, as data/claims/ writes it: parsed here, and never run as code.

``r_radial * d``, ``(loss - unigram) / 2``; a check compares two of these: ``accuracy >= 0.9``.
"""

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

LONGEST = 200  # characters
ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@functools.cache
def _parsed(text: str) -> ast.expr:
    """The tree of an expression of columns, numbers and + - * / alone, or of one comparison.

    Raises:
        ValueError: it is something else.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no arithmetic of columns") from None
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else [tree]
    if isinstance(tree, ast.Compare) and (len(sides) > 2 or type(tree.ops[0]) not in COMPARISONS):
        raise ValueError(f"{text!r}: compare two sides, with one of < <= > >=")
    for side in sides:
        _require_arithmetic(side, text)
    return tree


def _require_arithmetic(node: ast.expr, text: str) -> None:
    match node:
        case ast.Name():
            return
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.UnaryOp(op=ast.USub()):
            _require_arithmetic(node.operand, text)
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            _require_arithmetic(node.left, text)
            _require_arithmetic(node.right, text)
            if isinstance(node.op, ast.Div) and _span(node.right, {}) == (0, 0):
                raise ValueError(f"{text!r} divides by 0: the result is never known")
        case _:
            raise ValueError(f"{text!r}: only columns, numbers, + - * / and brackets are read")


def _is_measure(text: str) -> str:
    if isinstance(_parsed(text), ast.Compare):
        raise ValueError(f"{text!r} compares: give one quantity")
    return text


def _is_check(text: str) -> str:
    if not isinstance(_parsed(text), ast.Compare):
        raise ValueError(f"{text!r} compares nothing: give < <= > or >=")
    return text


_Text = Annotated[str, Field(min_length=1, max_length=LONGEST)]
Measure = Annotated[_Text, AfterValidator(_is_measure)]
Check = Annotated[_Text, AfterValidator(_is_check)]


def columns_in(text: str) -> list[str]:
    """The columns that an expression names, each once."""
    names = [node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(names))


def measure(text: str, row: Mapping[str, Any]) -> float:
    """The value of a quantity in a row; NaN for 0 as a divisor."""
    return _value(_parsed(text), row)


def _value(node: ast.expr, row: Mapping[str, Any]) -> float:
    match node:
        case ast.Name():
            return float(row[node.id])
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp():
            return -_value(node.operand, row)
        case ast.BinOp():
            left, right = _value(node.left, row), _value(node.right, row)
            if isinstance(node.op, ast.Div) and right == 0:
                return math.nan
            return ARITHMETIC[type(node.op)](left, right)
    raise TypeError(f"{ast.dump(node)} is no arithmetic")


Range = tuple[float, float]
ANYTHING: Range = (-math.inf, math.inf)


def span(text: str, ranges: Mapping[str, Range]) -> Range:
    """Least and greatest value that a quantity can have, given those of columns."""
    return _span(_parsed(text), ranges)


def _span(node: ast.expr, ranges: Mapping[str, Range]) -> Range:
    match node:
        case ast.Name():
            return ranges.get(node.id, ANYTHING)
        case ast.Constant(value=int() | float() as number):
            return float(number), float(number)
        case ast.UnaryOp():
            low, high = _span(node.operand, ranges)
            return -high, -low
        case ast.BinOp():
            (a, b), (c, d) = _span(node.left, ranges), _span(node.right, ranges)
            if isinstance(node.op, ast.Div) and c <= 0 <= d:
                return ANYTHING
            ends = [ARITHMETIC[type(node.op)](x, y) for x in (a, b) for y in (c, d)]
            return ANYTHING if any(map(math.isnan, ends)) else (min(ends), max(ends))
    raise TypeError(f"{ast.dump(node)} is no arithmetic")


def settled(check: str, ranges: Mapping[str, Range]) -> bool | None:
    """Whether a check is true, or false, of all values that columns can have; None if neither."""
    tree = _parsed(check)
    assert isinstance(tree, ast.Compare)
    (a, b), (c, d) = (_span(side, ranges) for side in (tree.left, tree.comparators[0]))
    compare = COMPARISONS[type(tree.ops[0])]
    answers = {compare(x, y) for x in (a, b) for y in (c, d)}
    is_known = len(answers) == 1 and not any(map(math.isinf, (a, b, c, d)))
    return answers.pop() if is_known else None


def holds(text: str, rows: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether a check is true of the means of both its sides over rows; None where one is NaN."""
    tree = _parsed(text)
    assert isinstance(tree, ast.Compare)
    left, right = (
        mean([_value(side, row) for row in rows]) for side in (tree.left, tree.comparators[0])
    )
    if math.isnan(left) or math.isnan(right):
        return None
    return COMPARISONS[type(tree.ops[0])](left, right)


def mean(values: Sequence[float]) -> float:
    """The mean of the finite values; NaN where there is none."""
    finite = [v for v in values if math.isfinite(v)]
    return math.fsum(finite) / len(finite) if finite else math.nan
