"""Values of measures and checks in the rows of a table."""

import ast
import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pandas as pd

from normscope.ledger.expression import ARITHMETIC, COMPARISONS, parsed


def measure(text: str, rows: pd.DataFrame) -> pd.Series:
    """The value of a measure in each row; NaN for 0 as a divisor."""
    values = np.broadcast_to(_values(parsed(text), rows), len(rows))
    return pd.Series(values, index=rows.index, dtype=float)


def holds(check: str, rows: pd.DataFrame) -> bool | None:
    """Whether a check is true for the means of its sides over rows; None if a mean is NaN."""
    tree = parsed(check)
    assert isinstance(tree, ast.Compare)
    left, right = (
        mean(np.broadcast_to(_values(side, rows), len(rows)))
        for side in (tree.left, tree.comparators[0])
    )
    if math.isnan(left) or math.isnan(right):
        return None
    return bool(COMPARISONS[type(tree.ops[0])](left, right))


def mean(values: Iterable[float]) -> float:
    """The mean of the finite values; NaN if there is none."""
    finite = [float(v) for v in values if math.isfinite(v)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def _values(node: ast.expr, rows: pd.DataFrame) -> Any:
    """An array with one value per row, or a number."""
    match node:
        case ast.Name():
            return rows[node.id].to_numpy(float)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp():
            return -_values(node.operand, rows)
        case ast.BinOp():
            left, right = _values(node.left, rows), _values(node.right, rows)
            if isinstance(node.op, ast.Div):
                right = np.where(right == 0, math.nan, right)
            with np.errstate(all="ignore"):
                return cast(Any, ARITHMETIC[type(node.op)])(left, right)
    raise TypeError(f"{ast.dump(node)} is not arithmetic")
