"""Which part of a gradient the norms of a model remove in the model's backward pass."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.api.arguments import public
from normscope.errors import Explained
from normscope.measure.decomposition import (
    StandardTokens,
    decompose,
    energies,
    gradient_at_z,
    standardize,
)
from normscope.measure.recognition import first_tensor, is_transformed, norms, recognize
from normscope.nn.norms import TokenNorm

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
    at: StandardTokens


class Watched:
    """The passes through the norms of a model in the body of ``with``. See ``watch``."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self._layers = layers
        self._passes: dict[str, list[_Pass]] = {name: [] for name in layers}
        self._problems: dict[str, str] = {}
        self._hooks = ExitStack()

    def __enter__(self) -> "Watched":
        # a graph that was compiled earlier does not call hooks; the compiler takes seconds to load
        if "torch._dynamo" in sys.modules:
            self._hooks.enter_context(torch.compiler.set_stance("force_eager"))
        for name, layer in self._layers.items():
            hook = layer.register_forward_hook(partial(self.keep, name), with_kwargs=True)
            self._hooks.callback(hook.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()

    def keep(
        self, name: str, module: nn.Module, args: tuple, named: dict[str, object], output: object
    ) -> None:
        """Keep the input of a norm's forward pass, and its gradient once that arrives.

        This hook runs in the user's forward pass and never raises: ``table`` reports the problems.
        """
        with self._noting_problems(name):
            y = first_tensor(output)
            if y is None:
                raise Explained("its output holds no tensor: watch a part without it")
            if is_transformed(y):
                raise Explained(TRANSFORMED)
            if y.requires_grad and y.numel():
                layer, x = _input(module, (*args, *named.values()), y)
                y.register_hook(partial(self._keep_gradient, name, layer, x))

    def _keep_gradient(self, name: str, layer: TokenNorm, x: Tensor, dy: Tensor) -> None:
        """Keep the gradient at a norm's output; this runs in the user's backward pass."""
        with self._noting_problems(name):
            if is_transformed(dy):
                raise Explained(TRANSFORMED)
            dy = dy.detach().reshape(x.shape).to("cpu", torch.float64)
            if not dy.isfinite().all():
                raise Explained(NOT_FINITE)
            g, d = gradient_at_z(layer, dy), x.shape[-1]
            at = standardize(layer, x.reshape(-1, d))
            self._passes[name].append(_Pass(g.reshape(-1, d), at))

    @contextmanager
    def _noting_problems(self, name: str) -> Iterator[None]:
        """Note why a norm cannot be measured instead of raising: the user's passes must go on."""
        try:
            with torch.no_grad():
                yield
        except Explained as e:
            self._problems.setdefault(name, str(e))
        except Exception as e:
            reason = f"{type(e).__name__}: {' '.join(str(e).split())}"
            self._problems.setdefault(name, f"{reason}; watch a part without it")

    def table(self) -> pd.DataFrame:
        """Tabulate the norms that a gradient has passed, one row each, in the model's order.

        Columns: norm (its name), kind (its class), center, d, tokens, those of
        ``normscope.measure.decomposition.decompose``, and problem (why a norm cannot be measured,
        such as a gradient that is not finite; its other numbers are then missing). ``r_mean`` is
        the share of the gradient's energy ``||g||^2`` that centering removes, ``r_radial`` the
        share that scaling removes, and ``r_tangent`` the share that passes, that of ``sigma *
        dL/dx``: means over tokens, which add up to 1. With ``_of_batch`` tokens are weighted by
        their energy. ``cos_center_scale``, ``cos_projected`` and ``cos_straight_through`` are
        cosines of the exact gradient with that of a backward pass that leaves out the radial term,
        the division by sigma, or both and the centering; ``error_*`` are their relative distances
        from it. A value is missing where it is undefined, such as a share of a gradient that is
        zero.

        Raises:
            Explained: no gradient has passed a norm, or none of the norms can be measured: the
                message names the first such norm and its reason.
        """
        names = [n for n in self._layers if self._passes[n] or n in self._problems]
        if not names:
            raise Explained(NO_GRADIENT)
        if len(names) == len(self._problems):
            (name, reason), *more = self._problems.items()
            others = f" and {len(more)} other norms" if more else ""
            raise Explained(f"cannot measure {name or 'the model itself'}{others}: {reason}")
        table = pd.DataFrame([self._row(name) for name in names])
        return table[[*table.columns.drop("problem"), "problem"]]

    def _row(self, name: str) -> dict[str, Any]:
        """The row of one norm, over the tokens of all its passes."""
        head = {"norm": name, "kind": type(self._layers[name]).__name__, "problem": None}
        if name in self._problems:
            return head | {"problem": self._problems[name]}
        passes = self._passes[name]
        g, z, sigma = (
            torch.cat(parts)
            for parts in zip(*((p.g, p.at.z, p.at.sigma) for p in passes), strict=True)
        )
        at = StandardTokens(z, sigma, passes[0].at.center)
        head |= {"center": at.center, "d": g.shape[1], "tokens": len(g)}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "std")  # one token has no deviation: it is missing
            return head | decompose(g, at, energies)


def _input(module: nn.Module, inputs: object, output: Tensor) -> tuple[TokenNorm, Tensor]:
    """The norm that a module computes, and a copy of its input, (..., d) in float64.

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
    layer = recognize(module, x, output.detach())
    # a copy, as later layers may change the input in place
    return layer, x.to("cpu", torch.float64, copy=True)


@public
def watch(model: nn.Module) -> Watched:
    r"""Watch the LayerNorms and RMSNorms of a model while the body runs both passes.

    With ``g = gain * dL/dy``, ``z = (x - <x>) / sigma`` and <.> a mean over the d channels, a
    LayerNorm passes back (Xu et al. 2019, arXiv:1911.07013)

        dL/dx = (g - <g> - z <g z>) / sigma

    and an RMSNorm the same without ``<g>``, with ``z = x / sigma``: centering removes the part of g
    along 1, and scaling the part along z, or less of it where eps is not small compared with the
    mean square of ``x - <x>``, as ``<z^2>`` is then below 1. The numbers are those of this exact
    backward pass of the norm that a module computes, also where a class of yours defines another
    backward pass. A layer of the registry whose ``norm_backward`` is not ``exact`` is a problem. ::

        with normscope.watch(model) as norms:
            loss = criterion(model(inputs), targets)
            loss.backward()
        norms.table()

    The tokens of all passes of the body are kept in float64 on the CPU, so run one or a few of
    them. Watching changes neither the model nor its gradients nor its random numbers, and never
    raises in the body: ``table`` reports what could not be measured. What a norm computes, such as
    its eps, is found by running a copy of it on random tokens. A compiled model runs uncompiled in
    the body, and is not recompiled afterwards.

    Args:
        model: any module. Its norms are modules whose class name ends with LayerNorm or RMSNorm,
            as in torch and in transformers, and modules with at most two vectors as parameters that
            compute a norm of each token. Where a norm takes or returns several tensors, the first
            one is measured.

    Returns:
        Watched: the passes, to be used in ``with``; call its method ``table`` after the backward
            pass.

    Raises:
        Explained: model is not a module, or has no norm.
    """
    return Watched(norms(model))
