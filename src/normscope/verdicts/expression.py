"""Measures and checks: arithmetic of columns, parsed and never run as code.

A measure is ``r_radial * d`` or ``(loss - unigram) / 2``; a check compares two of these, as in
``accuracy >= 0.9``. Does not import pandas, because the start of the workflow reads expressions.
"""

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 200  # characters
POWERS = range(2, 101)
ARITHMETIC: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
READ = (ast.Name, ast.Load, ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp, *ARITHMETIC)
COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@functools.cache
def _parse(text: str) -> ast.expr:
    """The syntax tree of arithmetic of columns and numbers, or of one comparison of two of them."""
    if len(text) > LONGEST:
        raise ValueError(f"a measure has at most {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is not arithmetic of columns") from None
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else [tree]
    if isinstance(tree, ast.Compare) and (len(sides) > 2 or type(tree.ops[0]) not in COMPARISONS):
        raise ValueError(f"{text!r}: compare two sides, with one of < <= > >=")
    for node in (node for side in sides for node in ast.walk(side)):
        number = node.value if isinstance(node, ast.Constant) else 0
        if not isinstance(node, READ) or type(number) not in (int, float):
            raise ValueError(f"{text!r}: only columns, numbers, + - * / ** and brackets are read")
        divisor = getattr(node.right, "value", None) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and divisor not in POWERS:
            raise ValueError(f"{text!r}: a power is a whole number from 2 to {POWERS[-1]}")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and divisor == 0:
            raise ValueError(f"{text!r} divides by 0")
    return tree


def check_measure(text: str) -> str:
    """The text, if it is one quantity."""
    if isinstance(_parse(text), ast.Compare):
        raise ValueError(f"{text!r} compares: give one quantity")
    if not columns_in(text):
        raise ValueError(f"{text!r} names no column")
    return text


def columns_in(text: str) -> list[str]:
    """The columns in an expression, each once."""
    names = [node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(names))


def values(text: str, rows: "pd.DataFrame") -> Any:
    """The value of a measure in each row; NaN for 0 as a divisor."""
    return _values(_parse(text), rows)


def holds(check: str, rows: "pd.DataFrame") -> bool:
    """Whether a check is true on average over rows; not if the mean is NaN."""
    tree = _parse(check)
    assert isinstance(tree, ast.Compare)
    above = f"({ast.unparse(tree.left)}) - ({ast.unparse(tree.comparators[0])})"
    return COMPARISONS[type(tree.ops[0])](mean(values(above, rows)), 0.0)


def mean(numbers: Iterable[float]) -> float:
    """The mean of the finite values; NaN if there is none."""
    finite = [float(v) for v in numbers if math.isfinite(v)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def _values(node: ast.AST, rows: "pd.DataFrame") -> Any:
    """A number, or a series with one number per row."""
    match node:
        case ast.Name():
            return rows[node.id].astype(float)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp():
            return -_values(node.operand, rows)
        case ast.BinOp():
            left, right = _values(node.left, rows), _values(node.right, rows)
            if isinstance(node.op, ast.Div) and not isinstance(right, float):
                right = right.replace(0.0, math.nan)
            return ARITHMETIC[type(node.op)](left, right)
    raise TypeError(f"{ast.dump(node)} is not arithmetic")
