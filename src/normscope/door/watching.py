"""Which part of a gradient the norms of a model remove in the model's backward pass."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.door.arguments import expect
from normscope.door.recognized import first_tensor, is_transformed, norms, recognized, tokens
from normscope.errors import Explained
from normscope.measure.decomposition import Standardized, decompose, gradient_at_z, standardize
from normscope.nn.norms import TokenNorm

Result = TypeVar("Result")

NOT_FINITE = (
    "the gradient at the output is not finite: find the layer after it, or the loss, that is "
    "infinite or NaN, and check its inputs, the learning rate and the loss scale"
)
TRANSFORMED = (
    "torch.func or a vectorized Jacobian (grad, vmap, jacrev) computes this pass, and shows no "
    "values: use loss.backward() or torch.autograd.grad"
)
NO_GRADIENT = (
    "no gradient has passed a norm: inside of `with normscope.watch(model)` run the forward pass "
    "without torch.no_grad() or torch.inference_mode(), on inputs that are not empty, and call "
    "loss.backward() on a loss that depends on the norms; if all parameters up to a norm are "
    "frozen, call requires_grad_() on the model's inputs"
)


class _Pass(NamedTuple):
    """The gradient at z of one pass, (tokens, d), and the tokens that it belongs to."""

    g: Tensor
    at: Standardized


class Watched:
    """The passes through the norms of a model. See ``watch``."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self._layers = layers
        self._passes: dict[str, list[_Pass]] = {name: [] for name in layers}
        self._problems: dict[str, str] = {}

    def keep(self, name: str, inputs: object, output: object) -> None:
        """Keep the input of a norm's forward pass, and its gradient once that arrives.

        This runs in the user's forward pass and never raises: ``table`` reports the problems.

        Args:
            name: of the norm in the model.
            inputs: all arguments of its forward pass.
            output: what the forward pass returned.
        """
        y = first_tensor(output)
        if y is None:
            self._problems.setdefault(name, "its output holds no tensor: watch a part without it")
        elif is_transformed(y):
            self._problems.setdefault(name, TRANSFORMED)
        elif y.requires_grad and y.numel():
            seen = _attempt(_input, self._layers[name], inputs, y)
            y.register_hook(lambda dy: self._keep_gradient(name, seen, dy))

    def _keep_gradient(self, name: str, seen: tuple[TokenNorm, Tensor] | str, dy: Tensor) -> None:
        """Keep the gradient at a norm's output; this runs in the user's backward pass."""
        passed = seen if isinstance(seen, str) else _attempt(_pass, *seen, dy)
        if isinstance(passed, str):
            self._problems.setdefault(name, passed)
        else:
            self._passes[name].append(passed)

    def table(self) -> pd.DataFrame:
        """Tabulate the norms that a gradient has passed, one row each, in the model's order.

        Columns: norm (its name), kind (its class), center, d, tokens, and those of
        ``normscope.measure.decomposition.decompose``. ``r_mean`` is the share of the gradient's
        energy that centering removes, ``r_radial`` the share that scaling removes, and
        ``r_tangent`` the share that passes: means over tokens, which add up to 1. With
        ``_of_batch`` tokens are weighted by their energy. ``cos_center_scale``, ``cos_projected``
        and ``cos_straight_through`` are cosines of the exact gradient with that of a backward pass
        that leaves out the radial term, the division by sigma, or both and the centering;
        ``error_*`` are their relative distances from it. A value is missing where it is undefined,
        such as a share of a gradient that is zero.

        Raises:
            Explained: no gradient has passed a norm, or one has passed a norm that cannot be
                measured: the message names the first such norm and its reason, such as a gradient
                that is not finite.
        """
        if self._problems:
            (name, reason), *more = self._problems.items()
            others = f" and {len(more)} other norms" if more else ""
            raise Explained(f"cannot measure {name or 'the model itself'}{others}: {reason}")
        rows = [self._row(name, passes) for name, passes in self._passes.items() if passes]
        if not rows:
            raise Explained(NO_GRADIENT)
        return pd.DataFrame(rows)

    def _row(self, name: str, passes: list[_Pass]) -> dict[str, Any]:
        """The row of one norm, over the tokens of all its passes."""
        if len({(p.at.center, p.g.shape[1]) for p in passes}) > 1:
            raise Explained(
                f"{name} differs between passes in d or in whether it centers: watch one pass at a "
                "time"
            )
        g, z, sigma = (
            torch.cat(parts)
            for parts in zip(*((p.g, p.at.z, p.at.sigma) for p in passes), strict=True)
        )
        at = Standardized(z, sigma, passes[0].at.center)
        head = {"norm": name, "kind": type(self._layers[name]).__name__}
        head |= {"center": at.center, "d": g.shape[1], "tokens": len(g)}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "std")  # one token has no deviation: it is missing
            return head | decompose(g, at)


def _attempt(step: Callable[..., Result], *args: object) -> Result | str:
    """The result of a step, or the reason why it failed: the user's passes must go on."""
    try:
        with torch.no_grad():
            return step(*args)
    except Explained as e:
        return str(e)
    except Exception as e:
        return f"{type(e).__name__}: {' '.join(str(e).split())}; watch a part without it"


def _input(module: nn.Module, inputs: object, output: Tensor) -> tuple[TokenNorm, Tensor]:
    """The norm that a module computes, and a copy of its input, (tokens, d) in float64.

    Raises:
        Explained: the module is not a norm of its input, or has another backward pass.
    """
    x = first_tensor(inputs)
    if x is None:
        raise Explained("its forward pass has no tensor as an argument: watch a part without it")
    if x.data_ptr() and x.data_ptr() == output.data_ptr():
        raise Explained("it writes its output over its input: watch a part without it")
    rule = getattr(module, "norm_backward", "exact")
    if isinstance(module, TokenNorm) and rule != "exact":
        raise Explained(
            f"its norm_backward is {rule}, and the shares are those of the exact backward pass: "
            'set its norm_backward to "exact", or watch a part without it'
        )
    x = x.detach()
    layer = recognized(module, x, output.detach())
    # a copy, as later layers may change the input in place
    return layer, tokens(module, x).to("cpu", torch.float64, copy=True)


def _pass(layer: TokenNorm, x: Tensor, dy: Tensor) -> _Pass:
    """The gradient at z for a gradient dy at the output.

    Raises:
        Explained: it is not finite.
    """
    if is_transformed(dy):
        raise Explained(TRANSFORMED)
    dy = dy.detach().reshape(x.shape).to("cpu", torch.float64)
    if not dy.isfinite().all():
        raise Explained(NOT_FINITE)
    return _Pass(gradient_at_z(layer, dy), standardize(layer, x))


@contextmanager
def watch(model: nn.Module) -> Iterator[Watched]:
    r"""Watch the LayerNorms and RMSNorms of a model while the body runs both passes.

    With ``g = gain * dL/dy``, ``z = (x - <x>) / sigma`` and <.> a mean over the d channels, a
    LayerNorm passes back (Xu et al. 2019, arXiv:1911.07013)

        dL/dx = (g - <g> - z <g z>) / sigma

    and an RMSNorm the same without ``<g>``, with ``z = x / sigma``: centering removes the part of g
    along 1, and scaling the part along z. The numbers are those of this exact backward pass of the
    norm that a module computes, also where a class of yours defines another backward pass. A layer
    of the registry whose ``norm_backward`` is not ``exact`` is an error of ``table``. ::

        with normscope.watch(model) as norms:
            loss = criterion(model(inputs), targets)
            loss.backward()
        norms.table()

    The tokens of all passes of the body are kept in float64 on the CPU, so run one or a few of
    them. Watching changes neither the model nor its gradients nor its random numbers, and never
    raises in the body: ``table`` reports what could not be measured. A compiled model runs
    uncompiled in the body, and is not recompiled afterwards.

    Args:
        model: any module. Its norms are ``torch.nn.LayerNorm``, ``torch.nn.RMSNorm``, and modules
            whose class name ends with LayerNorm or RMSNorm, as in transformers. Where a norm takes
            or returns several tensors, the first one is measured.

    Yields:
        Watched: the passes; call its method ``table`` after the backward pass.

    Raises:
        Explained: model is not a module, or has no norm, or a compiled function calls watch.
    """
    layers = norms(expect("model", model, nn.Module, "a torch.nn.Module, not its name"))
    watched = Watched(layers)

    def hooked(name: str, layer: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def keep(_: nn.Module, args: tuple, named: dict[str, object], output: object) -> None:
            watched.keep(name, (*args, *named.values()), output)

        return layer.register_forward_hook(keep, with_kwargs=True)

    handles = [hooked(name, layer) for name, layer in layers.items()]
    try:
        with _eager():
            yield watched
    finally:
        for handle in handles:
            handle.remove()


def _eager() -> AbstractContextManager[object]:
    """Run compiled models uncompiled, as a graph compiled earlier does not call hooks.

    The compiler takes seconds to load; if it is not loaded, no model was compiled.

    Raises:
        Explained: watch is called in a function that is being compiled.
    """
    inside = Explained(
        "watch is called inside of a function that torch.compile runs: call it outside"
    )
    if torch.compiler.is_compiling():
        raise inside
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    try:
        return torch.compiler.set_stance("force_eager")
    except RuntimeError as e:
        raise inside from e
