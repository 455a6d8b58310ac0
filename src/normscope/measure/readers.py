"""The linear layers that read the outputs of norms, found by running a model.

Every call of a torch function is seen, whatever the classes of the model: ``torch.nn.Linear``, the
``Conv1D`` of GPT-2, or a head that multiplies by the matrix of the embedding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from normscope.errors import Explained
from normscope.measure.recognition import first_tensor

SHORTER = (torch.float16, torch.bfloat16, torch.float32)
CASTS = (Tensor.half, Tensor.bfloat16, Tensor.float)


class InFloat64(TorchFunctionMode):
    """Compute in float64 where the code of a model in float64 asks for a shorter type.

    Norms and softmax of transformers compute in float32 whatever the type of the model. A change of
    the last digit in float64 could change how a number is rounded there, and so grow a billionfold.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        func = Tensor.double if func in CASTS else func
        args, kwargs = tree_map(_longer, (args, kwargs or {}))
        return func(*args, **kwargs)


def _longer(value: object) -> object:
    is_shorter = isinstance(value, torch.dtype) and value in SHORTER
    return torch.float64 if is_shorter else value


class Reader(NamedTuple):
    """A linear layer that reads the output of a norm.

    Attributes:
        name: of the module that has its weight.
        owner: this module.
        weight: (out, in), or (in, out) if transposed.
        bias: (out,), if it has one.
        transposed: as in GPT-2.
        scale: a constant by which the output of the norm is multiplied before.
    """

    name: str
    owner: nn.Module
    weight: Tensor
    bias: Tensor | None
    transposed: bool
    scale: float


class _Product(NamedTuple):
    """A product of tokens x with a weight (out, in), or (in, out) if transposed, plus a bias."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    transposed: bool


class _Output(NamedTuple):
    """The output of a norm, or a view or a multiple of it."""

    tensor: Tensor
    norm: str
    scale: float


class _Use(NamedTuple):
    """An operation on a parameter, and the norm whose output it multiplies, if there is one."""

    operation: str
    norm: str | None


class Readers(TorchFunctionMode):
    """Finds what reads the outputs of norms while a model runs; see ``reading``."""

    def __init__(self, model: nn.Module, norms: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._model = model
        self._norms = {module: name for name, module in norms.items()}
        self._places = [""]  # the modules that are running, the innermost last
        self._passed: dict[str, tuple[Tensor, Tensor]] = {}
        # by the id of a tensor, which the dictionary keeps, so that no other gets this id
        self._outputs: dict[int, _Output] = {}
        self._names: dict[int, list[str]] = {}
        for name, p in model.named_parameters(remove_duplicate=False):
            self._names.setdefault(id(p), []).append(name)
        self._uses: dict[int, list[_Use]] = {key: [] for key in self._names}
        self._transposes: dict[int, tuple[Tensor, Tensor]] = {}  # views, and their parameters
        self._products: dict[str, list[tuple[_Product, float]]] = {name: [] for name in norms}
        self._others: dict[str, str] = {}

    def enter(self, place: str, *_: object) -> None:
        """Note that a module begins its forward pass."""
        self._places.append(place)

    def leave(self, module: nn.Module, args: tuple, named: dict[str, Any], output: object) -> None:
        """Note that a module ends its forward pass."""
        x, y = first_tensor((*args, *named.values())), first_tensor(output)
        if module in self._norms and x is not None and y is not None:
            name = self._norms[module]
            if name not in self._passed:  # copies, as later operations may be in place
                self._passed[name] = x.clone(), y.clone()
            self._outputs[id(y)] = _Output(y, name, 1.0)
        if module is self._model:
            for t in tree_leaves(output):
                if id(t) in self._outputs:
                    self._others.setdefault(self._outputs[id(t)].norm, "what the model returns")
        self._places.pop()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        read = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        versions = [t._version for t in read]
        result = func(*args, **kwargs)
        name = func.__name__.strip("_")
        has_values = any(isinstance(t, Tensor) for t in tree_leaves(result))  # and no shape or type
        if has_values and not name.endswith("_like"):
            is_changed = versions != [t._version for t in read]  # in place
            product = self._product(name, *args, **kwargs)
            scale = None if is_changed or kwargs else _scale(name, args)
            self._note(name, read, None if is_changed else result, product, scale)
        return result

    def _product(self, name: str, *args: Any, **kwargs: Any) -> _Product | None:
        """A call of a function as a product of tokens with a weight, if it is one."""
        match name, args:
            case "linear", _:
                return _linear(*args, **kwargs)
            case "addmm", (bias, x, weight) if not kwargs:
                return _Product(x, weight, bias, True)
            case "matmul", (x, weight) if id(weight) in self._transposes:
                return _Product(x, self._transposes[id(weight)][1], None, False)
            case "matmul", (x, weight):
                return _Product(x, weight, None, True)
        return None

    def _note(
        self,
        name: str,
        read: list[Tensor],
        result: object,
        product: _Product | None,
        scale: float | None,
    ) -> None:
        """Note a call.

        Args:
            name: of the function.
            read: the tensors among its arguments.
            result: what it returned, or None if it changed one of them.
            product: the call as a product with a weight, if it is one.
            scale: the constant by which it multiplies, if it does.
        """
        operation = f"{name} in {self._places[-1] or 'the model'}"
        x = self._outputs.get(id(product.x)) if product else None
        made = result if isinstance(result, Tensor) else None
        for t in read:
            p = self._transposes.get(id(t), (t, t))[1]
            if id(p) in self._uses and made is not None and _is_transpose(made, p):
                self._transposes[id(made)] = made, p
            elif id(p) in self._uses and made is not p:
                self._uses[id(p)].append(_Use(operation, x.norm if x else None))
            output = self._outputs.get(id(t))
            if output is None:
                continue
            if product and t is product.x:
                self._products[output.norm].append((product, output.scale))
            elif made is not None and (scale is not None or _is_view(made, t)):
                factor = output.scale * (1.0 if scale is None else scale)
                self._outputs[id(made)] = _Output(made, output.norm, factor)
            else:
                self._others.setdefault(output.norm, operation)

    def first_call(self, norm: str) -> tuple[Tensor, Tensor]:
        """The input and the output of a norm in its first call."""
        if norm not in self._passed:
            raise Explained("the model does not run it")
        return self._passed[norm]

    def find(self, norm: str) -> list[Reader]:
        """The linear layers that read the output of a norm, if nothing else does.

        Raises:
            Explained: something else reads it or uses their parameters, or nothing reads it; or
                the pass left out parameters that may read it in another pass.
        """
        if norm in self._others:
            raise Explained(f"its output goes to {self._others[norm]}, which is not a linear layer")
        readers: dict[int, Reader] = {}
        for (_, weight, bias, transposed), scale in self._products[norm]:
            for p in (weight, bias):
                if p is not None:
                    self._check(p, norm)
            name = self._names[id(weight)][-1].rpartition(".")[0]
            owner = self._model.get_submodule(name)
            added = getattr(owner, "bias", None) if bias is None else bias  # maybe after a product
            readers[id(weight)] = Reader(name, owner, weight, added, transposed, scale)
        if not readers:
            raise Explained("its output does not go to a linear layer")
        if unused := self._unused_parameters(self._passed[norm][1].shape[-1]):
            more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
            raise Explained(
                f"{', '.join(unused[:3])}{more} may read its output, but a call of the model does "
                "not use them: let its forward method use them, or remove them"
            )
        return list(readers.values())

    def names(self, norm: str) -> list[str]:
        """What reads the output of a norm: linear layers, and the first other operation."""
        weights = (self._names.get(id(product.weight)) for product, _ in self._products[norm])
        layers = dict.fromkeys(names[-1].rpartition(".")[0] for names in weights if names)
        return [*layers, *([self._others[norm]] if norm in self._others else [])]

    def _unused_parameters(self, d: int) -> list[str]:
        """Names of the parameters that the pass did not use and that may multiply d channels."""
        return [
            names[0]
            for key, names in self._names.items()
            if not self._uses[key] and d in self._input_sizes(names[0])
        ]

    def _input_sizes(self, name: str) -> Sequence[int]:
        """The sizes of a parameter by which it may multiply a tensor."""
        owner, _, leaf = name.rpartition(".")
        if isinstance(self._model.get_submodule(owner), nn.Linear):
            return self._model.get_parameter(name).shape[1:] if leaf == "weight" else ()
        return self._model.get_parameter(name).shape

    def _check(self, p: Tensor, norm: str) -> None:
        """Check that a tensor is a parameter that is used with the output of one norm alone."""
        if id(p) not in self._uses:
            raise Explained("its output is multiplied with a matrix that is not a parameter")
        for use in self._uses[id(p)]:
            if use.norm != norm:
                raise Explained(f"{self._names[id(p)][-1]} is tied: {use.operation} uses it, too")


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> _Product:
    """The arguments of ``torch.nn.functional.linear``."""
    return _Product(input, weight, bias, False)


def _scale(name: str, args: tuple[Any, ...]) -> float | None:
    """The number by which a function multiplies a tensor, if it does."""
    match name, args:
        case ("mul" | "rmul", (Tensor(), int() | float() as c) | (int() | float() as c, Tensor())):
            return float(c)
        case ("div" | "truediv", (Tensor(), int() | float() as c)):
            return 1 / c
    return None


def _is_transpose(result: Tensor, p: Tensor) -> bool:
    """Whether a tensor is the transposed matrix p, in its memory."""
    return (
        p.dim() == result.dim() == 2
        and result.data_ptr() == p.data_ptr()
        and (result.shape, result.stride()) == (p.shape[::-1], p.stride()[::-1])
    )


def _is_view(result: Tensor, x: Tensor) -> bool:
    """Whether a tensor has the tokens of x, (..., d), in the memory of x."""
    return (
        result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        and (result.dtype, result.shape[-1:]) == (x.dtype, x.shape[-1:])
        and result.stride()[-1:] == x.stride()[-1:]
    )


@contextmanager
def reading(model: nn.Module, norms: Mapping[str, nn.Module]) -> Iterator[Readers]:
    """Find what reads the outputs of norms of a model while the body runs it."""
    readers = Readers(model, norms)
    handles = []
    for name, module in model.named_modules():
        handles += [
            module.register_forward_pre_hook(partial(readers.enter, name)),
            module.register_forward_hook(readers.leave, with_kwargs=True),
        ]
    try:
        with readers:
            yield readers
    finally:
        for handle in handles:
            handle.remove()
