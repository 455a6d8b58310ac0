"""What each public function does first: it checks the types of its arguments.

Its results do not depend on the settings of torch by which a caller trades precision for speed.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import accumulate
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from normscope.errors import Explained

DEVICES = ("cpu", "cuda", "mps", "xpu")  # with a separate switch of autocast

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function that checks its arguments against its annotations, and computes exactly.

    Where an annotation is an iterable, the function gets a list.
    """
    hints, signature = get_type_hints(function), inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # whose message does not name the function
            return function(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = _argument(name, value, hints[name])
        modules = [value for value in bound.arguments.values() if isinstance(value, nn.Module)]
        devices = {p.device.type for module in modules for p in module.parameters()}
        with _settings(on_cpu=devices <= {"cpu"}):
            return function(*bound.args, **bound.kwargs)

    return call


@contextmanager
def _settings(*, on_cpu: bool) -> Iterator[None]:
    """Run the body without autocast, inference mode and products of less than float32.

    Args:
        on_cpu: new tensors are on the CPU; else on the device that the caller has set.
    """
    matmuls = (torch.backends.mkldnn.matmul, torch.backends.cuda.matmul)  # pyright: ignore
    precisions = [matmul.fp32_precision for matmul in matmuls]
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        if on_cpu:
            stack.enter_context(torch.device("cpu"))
        for device in filter(torch.is_autocast_enabled, DEVICES):
            stack.enter_context(torch.autocast(device, enabled=False))
        try:
            for matmul in matmuls:
                matmul.fp32_precision = "ieee"
            yield
        finally:
            for matmul, precision in zip(matmuls, precisions, strict=True):
                matmul.fp32_precision = precision


def _argument(name: str, value: Any, hint: Any) -> Any:
    """An argument of this name, if it has the type of its annotation."""
    kind = type(value).__name__
    is_iterable = isinstance(value, Iterable) and not isinstance(value, str | Mapping | Tensor)
    if is_iterable and any(map(_items, _choices(hint))):
        value = list(value)
        kind += f" of {', '.join(sorted({type(item).__name__ for item in value}))}"
    if not _fits(value, hint):
        raise Explained(f"{name} is of type {kind}: give {_words(hint)}")
    return value


def _choices(hint: Any) -> tuple:
    """The types that an annotation allows."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _items(hint: Any) -> Any:
    """The type of the items of an annotation such as ``Collection[str]``, or None."""
    origin = get_origin(hint)
    return get_args(hint)[0] if origin and issubclass(origin, Iterable) else None


def _fits(value: object, hint: Any) -> bool:
    if hint is int:
        return isinstance(value, Integral)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if len(choices := _choices(hint)) > 1:
        return any(_fits(value, choice) for choice in choices)
    if get_origin(hint) is type:
        return isinstance(value, type) and issubclass(value, get_args(hint)[0])
    if item := _items(hint):
        return isinstance(value, list) and all(_fits(v, item) for v in value)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    """A type as a user writes it."""
    if len(choices := _choices(hint)) > 1:
        return " or ".join(map(_words, choices))
    if get_origin(hint) is type:
        return f"a subclass of {_words(get_args(hint)[0])}"
    if item := _items(hint):
        return f"a list of {_words(item)}"
    if hint is NoneType:
        return "None"
    if hint.__module__ == "builtins":
        return hint.__name__
    modules = accumulate(hint.__module__.split("."), "{}.{}".format)
    return next(f"{m}.{hint.__name__}" for m in modules if hasattr(sys.modules[m], hint.__name__))
