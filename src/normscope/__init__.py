"""normscope: what normalization does inside transformers, measured.

The names of ``__all__`` are for users: each is loaded when it is asked for, as every job of the
workflow imports this package.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

_MODULE_OF = {
    "Explained": "normscope.errors",
    "arms": "normscope.api.factors",
    "card": "normscope.api.cards",
    "compare": "normscope.api.comparison",
    "factors": "normscope.api.factors",
    "fold": "normscope.api.folds",
    "gain": "normscope.api.gains",
    "load": "normscope.api.stored",
    "models": "normscope.api.stored",
    "norms": "normscope.api.passport",
    "removable": "normscope.api.removal",
    "remove": "normscope.api.removal",
    "table": "normscope.api.stored",
    "tables": "normscope.api.stored",
    "watch": "normscope.api.watching",
}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({"__version__", *__all__})
