"""Norms with code of their own, from a user's file or an installed package.

The code runs with the rights of the process. Jobs run it from the copy that the workflow made;
whoever loads a model elsewhere gives the class (``use_class``).
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn

from normscope.errors import Explained, suggest
from normscope.nn.dropout import draw_seed
from normscope.nn.recipe import Custom

# names of arguments with a default that are the width of tokens all the same
WIDTHS = frozenset(
    "d d_model features hidden_size n_embd normalized_shape num_channels num_features width".split()
)
_CLASS: ContextVar[type[nn.Module] | None] = ContextVar("class of custom norms", default=None)


@contextmanager
def use_class(kind: type[nn.Module]) -> Iterator[None]:
    """Build custom norms in the body from this class."""
    token = _CLASS.set(kind)
    try:
        yield
    finally:
        _CLASS.reset(token)


def load(custom: Custom) -> Callable[..., Any]:
    """The class of a custom norm."""
    if kind := _CLASS.get():
        return kind
    place, _, name = custom.name.rpartition(":")
    try:
        path = Path(custom.folder, place)
        module = _module(path) if custom.folder else importlib.import_module(place)
    except (Exception, SystemExit) as e:  # of any kind, as the code is a user's
        raise Explained(f"{place} cannot be imported: {type(e).__name__}: {e}") from e
    kind = getattr(module, name, None)
    is_module = inspect.isclass(kind) and issubclass(kind, nn.Module)
    # a configuration alone must not call any function of any package
    if not is_module and not (custom.folder and callable(kind)):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        of_modules = " that is a torch.nn.Module" * (kind is not None)
        raise Explained(f"{place} has no class {name!r}{of_modules}; {suggest(name, classes)}")
    return cast("Callable[..., Any]", kind)


@cache
def _module(path: Path) -> ModuleType:
    """The module of a file, which may import others from its folder."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    folder, own = str(path.parent), f"custom_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(own, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module  # where dataclasses look for it
    before = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
        # the file of another norm may import modules of the same names from another folder
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == path.parent.absolute():
                del sys.modules[name]
    return module


def make(custom: Custom, d: int) -> Any:
    """An instance of a custom norm; the options have its arguments but d."""
    kind = load(custom)
    try:
        free = _of_width(kind, custom)
        if free is None:
            return kind(**custom.options)
        if free.kind is inspect.Parameter.POSITIONAL_ONLY:
            return kind(d, **custom.options)
        return kind(**custom.options, **{free.name: d})
    except Exception as e:  # of any kind, as the code is a user's
        arguments = ", ".join([str(d), *(f"{k}={v!r}" for k, v in custom.options.items())])
        raise Explained(
            f"cannot be built with ({arguments}): {type(e).__name__}: {e}; give what is missing "
            f"under arms, as {{module: {custom.name}, options: {{name: value}}}}"
        ) from e


def _of_width(kind: Callable[..., Any], custom: Custom) -> inspect.Parameter | None:
    """The argument of a class that takes d: the first one without a default that is left open.

    If all have defaults, it is the first one with a name of ``WIDTHS``; a class may have none.
    """
    is_plain = inspect.isclass(kind) and kind.__init__ is nn.Module.__init__
    parameters = {} if is_plain else inspect.signature(kind).parameters
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    free = [p for n, p in parameters.items() if n not in custom.options and p.kind not in kinds]
    needed = [p for p in free if p.default is inspect.Parameter.empty]
    return next(iter([*needed, *(p for p in free if p.name in WIDTHS)]), None)


def start(model: nn.Module) -> None:
    """Draw the parameters of every custom norm of a model, each from a seed of its own.

    The seeds follow from that of torch's generator, which stays as it is.
    """
    norms = [module for module in model.modules() if isinstance(module, CustomNorm)]
    for i, norm in enumerate(norms):
        norm.draw((torch.initial_seed() + 1 + i) % 2**63)


class CustomNorm(nn.Module):
    """A custom norm: ``(..., d)`` to ``(..., d)``, without autocast.

    The rest of a model starts with the same weights as with any other norm: what the norm draws for
    its parameters leaves torch's generator as it was, and its parameters stay as it made them. The
    model calls ``start``, so that no two of its norms draw the same.
    """

    def __init__(self, d: int, custom: Custom) -> None:
        super().__init__()
        self.is_flat, self.is_random = custom.is_flat, custom.is_random
        self.custom, self.d = custom, d
        self.draw(torch.initial_seed())

    def draw(self, seed: int) -> None:
        """Make the norm, and draw its parameters from a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner: nn.Module = make(self.custom, self.d)

    def apply(self, fn: Callable[[nn.Module], None]) -> "CustomNorm":
        """Nothing: a model initializes its layers through this method, and not a custom norm."""
        return self

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1]) if self.is_flat else x
        with torch.autocast(x.device.type, enabled=False):
            if not (self.is_random and self.training):
                return self.inner(tokens).view(x.shape)
            with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
                torch.manual_seed(draw_seed())
                return self.inner(tokens).view(x.shape)
