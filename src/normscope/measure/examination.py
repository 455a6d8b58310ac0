"""The examination of a norm with code of its own: whether and how it can be trained.

A process of its own runs it: ``python -m normscope.measure.examination --norm JSON --out FILE``.
"""

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.parameter import is_lazy

from normscope.command import parse
from normscope.errors import Explained, run_script
from normscope.io.files import write_text
from normscope.measure.derivatives import (
    inner_product,
    is_coarse,
    is_derivative,
    random_direction,
)
from normscope.measure.properties import perturb
from normscope.nn.custom import make
from normscope.nn.recipe import Custom
from normscope.schema import Strict

Tensors = Mapping[str, Tensor]
WIDTHS = (64, 32)  # of the two sizes of models that are trained most
SHAPE = (2, 3)  # windows and tokens
LENGTHS = (1, 5), (4, 2), (32, 32), (1, 256)  # the last ones are as long as those of models
SCALES = (1.0, 1e-3, 1e3)  # of inputs
TOLERANCE = 1e-5  # of outputs that should be equal, relative to the largest


def examine(custom: Custom) -> Custom:
    """What is found of a norm, by building it and running it on the CPU."""
    subject = _Subject(custom)
    before = _settings()
    custom = custom.model_copy(update={"is_flat": subject.is_flat})
    subject = _Subject(custom)
    for d in WIDTHS:
        norm = subject.build(d)
        _check_parameters(norm)
        names = [name for name, _ in norm.module.named_parameters()]
        for scale in SCALES:
            _check_values(norm, scale * _tokens(d), f"tokens of scale {scale:g}")
        _check_values(norm, torch.zeros(*SHAPE, d), "tokens of zeros")
        if names != [name for name, _ in norm.module.named_parameters()]:
            raise Explained("its first call makes or removes parameters: make them in __init__")
    _check_lengths(subject)
    is_exact = _is_exact(subject)
    _check_evaluation(subject)
    if changed := [name for name, value in _settings().items() if before[name] != value]:
        raise Explained(f"it changes {', '.join(changed)} of the whole process: leave it as it is")
    is_random = _is_random(subject)
    _check_state(subject)
    update: dict[str, Any] = {"is_random": is_random, "is_exact": is_exact}
    if not is_random:
        update |= {"is_token_wise": _is_token_wise(subject), "stacks": _stacks(subject)}
    return custom.model_copy(update=update)


class _Subject:
    """Builds instances that are equal for equal seeds, and runs them on tokens (..., d)."""

    def __init__(self, custom: Custom) -> None:
        self.custom = custom

    def build(self, d: int = WIDTHS[0], seed: int = 0) -> "_Run":
        torch.manual_seed(seed)
        module = make(self.custom, d)
        if not isinstance(module, nn.Module):
            kind = type(module).__name__
            raise Explained(
                f"{self.custom.name} makes a {kind}: name a subclass of torch.nn.Module"
            )
        return _Run(module, is_flat=self.custom.is_flat)

    @property
    def is_flat(self) -> bool:
        """Whether it takes tokens as (N, d) alone.

        Raises:
            Explained: It takes them in neither shape.
        """
        x, failures = _tokens(WIDTHS[0]), []
        for given in (x, x.reshape(-1, x.shape[-1])):
            module = self.build().module
            try:
                y = module(given.clone())
            except Exception as e:  # of any kind, as the code is a user's
                failures.append(f"{type(e).__name__}: {' '.join(str(e).split())}")
                continue
            if isinstance(y, Tensor) and y.shape == given.shape:
                return given.dim() == 2
            shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            failures.append(f"it makes {shape} of {tuple(given.shape)}")
        raise Explained(f"it must map (..., d) to (..., d): {failures[0]}")


class _Run(NamedTuple):
    """An instance, called on tokens (..., d)."""

    module: nn.Module
    is_flat: bool

    def __call__(self, x: Tensor) -> Tensor:
        return self.module(x.reshape(-1, x.shape[-1]) if self.is_flat else x).view(x.shape)


def _tokens(d: int, seed: int = 0) -> Tensor:
    """Windows of tokens with a mean, (*SHAPE, d)."""
    return torch.randn(*SHAPE, d, generator=torch.Generator().manual_seed(seed)) + 0.5


def _settings() -> dict[str, Any]:
    """Settings of the process that other code depends on."""
    return {
        "the working directory": Path.cwd(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": torch.get_default_device(),
        "torch's number of threads": torch.get_num_threads(),
        "torch's precision of products": torch.get_float32_matmul_precision(),
        "whether torch records gradients": torch.is_grad_enabled(),
        "whether torch is deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _check_parameters(norm: _Run) -> None:
    tensors = [*norm.module.named_parameters(), *norm.module.named_buffers()]
    names: dict[Tensor, str] = {}
    for name, parameter in norm.module.named_parameters(remove_duplicate=False):
        if names.setdefault(parameter, name) != name:
            raise Explained(f"{names[parameter]} and {name} are one parameter: keep one of them")
        if not parameter.requires_grad:
            raise Explained(f"{name} requires no gradient: register it as a buffer")
    for name, tensor in tensors:
        if is_lazy(tensor):
            raise Explained(f"{name} has no shape until the first call: make it in __init__")
        if tensor.device.type != "cpu":
            raise Explained(f"{name} is on {tensor.device}: build it on the CPU; jobs move it")
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            raise Explained(f"{name} is {tensor.dtype}: make it torch.float32, like the models")


def _check_values(norm: _Run, x: Tensor, of: str) -> None:
    """Check the output for some tokens and its gradients, and that the input stays as it is."""
    given = x.clone().requires_grad_()
    seen = given * 1  # a leaf could not be changed in place
    before = seen.detach().clone()
    try:
        y = norm(seen)
    except Exception as e:  # of any kind, as the code is a user's
        shape = tuple(x.shape)
        raise Explained(
            f"it fails for tokens {shape}, and must take any number and width: {e}"
        ) from e
    if not torch.equal(seen.detach(), before):
        raise Explained("it changes its input in place: compute a new tensor")
    if y.dtype != x.dtype:
        raise Explained(f"it makes {y.dtype} of {x.dtype}: return the type of the input")
    if not y.isfinite().all():
        raise Explained(f"its output for {of} is not finite: add a small eps")
    parameters = dict(norm.module.named_parameters())
    if not y.requires_grad:
        raise Explained("its output has no gradient: do not detach it, nor use torch.no_grad")
    weights = _tokens(x.shape[-1], seed=1)
    inputs = [given, *parameters.values()]
    gradients = torch.autograd.grad((weights * y).sum(), inputs, allow_unused=True)
    for name, gradient in zip(["its input", *parameters], gradients, strict=True):
        if gradient is None:
            raise Explained(f"{name} gets no gradient: use it, or remove it")
        if not gradient.isfinite().all():
            raise Explained(f"the gradient of {name} for {of} is not finite: add a small eps")


def _check_lengths(subject: _Subject) -> None:
    """Check that it takes windows of any number and length."""
    for tokens in LENGTHS:
        x = torch.randn(*tokens, WIDTHS[0], generator=torch.Generator().manual_seed(0))
        try:
            y = subject.build()(x)
        except Exception as e:  # of any kind, as the code is a user's
            raise Explained(
                f"it must map (..., d) to (..., d), whatever the number of tokens: {e}"
            ) from e
        if y.shape != x.shape:
            raise Explained(f"it must map (..., d) to (..., d): it makes {tuple(y.shape)}")


def _is_exact(subject: _Subject) -> bool:
    """Whether its backward pass is the derivative of its forward pass, in float64.

    Trained models are measured in float64, and their curvature needs second derivatives.

    Raises:
        Explained: It fails in float64, or the derivative of its backward pass is wrong or missing.
    """
    norm = subject.build()
    module = norm.module.double().eval()
    x = _tokens(WIDTHS[0]).double()
    try:
        y = norm(x)
    except Exception as e:  # of any kind, as the code is a user's
        raise Explained(f"it fails in float64, in which models are measured: {e}") from e
    if y.dtype != torch.float64:
        raise Explained(f"in float64 it makes {y.dtype}: compute in the type of the input")
    parameters = dict(perturb(module).named_parameters())
    inputs = [x, *parameters.values()]
    inputs = [one.detach().requires_grad_() for one in inputs]
    weights = _tokens(WIDTHS[0], seed=1).double()
    along = random_direction(inputs, seed=-1)

    def value(x: Tensor, *moved: Tensor) -> Tensor:
        state = dict(zip(parameters, moved, strict=True))
        call = _Calls(lambda tokens: functional_call(module, state, (tokens,)))
        return (weights * norm._replace(module=call)(x)).sum()

    def slope(*inputs: Tensor) -> Tensor:
        gradients = torch.autograd.grad(
            value(*inputs), inputs, create_graph=True, materialize_grads=True
        )
        return inner_product(gradients, along)

    coarse = is_coarse(norm, x)
    is_exact = is_derivative(value, inputs, coarse=coarse)
    try:
        is_twice = is_derivative(slope, inputs, coarse=coarse)
    except RuntimeError as e:
        raise Explained(f"it has no second derivative, which the curvature needs: {e}") from e
    if is_exact and not is_twice:
        raise Explained(
            "its second derivative, which the curvature needs, is not that of its gradient: make "
            "the backward pass differentiable"
        )
    return is_exact


def _check_evaluation(subject: _Subject) -> None:
    """Check that in evaluation it is a function, and that no token sees a later one."""
    norm = subject.build()
    norm.module.eval()
    x, states = _tokens(WIDTHS[0]), _random_states()
    with torch.no_grad():
        y = norm(x)
        again = norm(x)
        if not torch.equal(y, again) or states != _random_states():
            raise Explained(
                "it is random in evaluation, or changes its state: be a function of the input "
                "where not self.training"
            )
        other = torch.cat([x[:, :1], _tokens(WIDTHS[0], seed=1)[:, 1:]], dim=1)
        if not _alike(norm(other)[:, 0], y[:, 0]):
            raise Explained(
                "in evaluation, its output for a token depends on later tokens, from which a causal"
                " model could read the answer: normalize each token by itself, or use running means"
            )


def _random_states() -> list[Any]:
    return [torch.get_rng_state().tolist(), random.getstate(), str(np.random.get_state())]


def _in_training(subject: _Subject, x: Tensor, seed: int = 0) -> Tensor:
    norm = subject.build()
    torch.manual_seed(seed)
    return norm(x).detach()


def _is_random(subject: _Subject) -> bool:
    """Whether it draws random numbers in training.

    Raises:
        Explained: It draws them from another generator than torch's.
    """
    norm, x = subject.build(), _tokens(WIDTHS[0])
    before = _random_states()
    norm(x)
    torchs, *others = [one != other for one, other in zip(before, _random_states(), strict=True)]
    if any(others) or not torch.equal(_in_training(subject, x), _in_training(subject, x)):
        raise Explained("torch.manual_seed does not determine what it draws: use torch's generator")
    return torchs


def _check_state(subject: _Subject) -> None:
    """Check that a state dict has all of its state: trainings resume from it."""
    norm, fresh = subject.build(), subject.build(seed=1)
    before = dict(norm.module.named_buffers())
    for seed in range(6):
        try:
            norm(_tokens(WIDTHS[0], seed).requires_grad_()).sum().backward()
        except RuntimeError as e:
            raise Explained(f"a second step fails: change its state in torch.no_grad: {e}") from e
    for name, buffer in norm.module.named_buffers():
        if before.get(name) is not buffer:
            raise Explained(
                f"it assigns a new tensor to its buffer {name}, of which checkpoints know nothing: "
                "change the tensor in place, in torch.no_grad"
            )
    fresh.module.load_state_dict(norm.module.state_dict())
    x = _tokens(WIDTHS[0], seed=9)
    for mode in (True, False):
        outputs = []
        for one in (norm, fresh):
            one.module.train(mode)
            torch.manual_seed(0)
            outputs.append(one(x))
        if not torch.equal(outputs[0], outputs[1]):
            raise Explained(
                "it keeps state that is neither a parameter nor a buffer, which a resumed training "
                "would lose: use register_buffer, with persistent=True"
            )


def _is_token_wise(subject: _Subject) -> bool:
    """Whether another token changes nothing, in training."""
    x, others = _tokens(WIDTHS[0]), _tokens(WIDTHS[0], seed=1)
    others[0, 0] = x[0, 0]
    return _alike(_in_training(subject, x)[0, 0], _in_training(subject, others)[0, 0])


def _stacks(subject: _Subject) -> bool:
    """Whether two of them under vmap compute what each of them does, with its state."""
    norms = [subject.build(seed=seed) for seed in (0, 1)]
    inputs = torch.stack([_tokens(WIDTHS[0], seed) for seed in (0, 1)])
    stacked = stack_module_state([norm.module for norm in norms])
    first, is_flat = norms[0].module, subject.custom.is_flat

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor) -> Tensor:
        def call(tokens: Tensor) -> Tensor:
            return functional_call(first, (dict(parameters), dict(buffers)), (tokens,))

        return _Run(_Calls(call), is_flat)(x)

    alone = torch.stack([norm(x) for norm, x in zip(norms, inputs, strict=True)])
    try:
        together = vmap(forward)(*stacked, inputs)
    except Exception:
        return False
    buffers = [dict(norm.module.named_buffers()) for norm in norms]
    are_alike = all(
        _alike(stacked[1][name][i], own)
        for i, of_norm in enumerate(buffers)
        for name, own in of_norm.items()
    )
    return are_alike and _alike(together, alone)


class _Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.forward = function


def _alike(one: Tensor, other: Tensor) -> bool:
    one, other = one.detach().double(), other.detach().double()
    return bool((one - other).abs().max() <= TOLERANCE * other.abs().max().clamp(min=1.0))


class Flags(Strict):
    """Examine a norm, and write it with what was found."""

    norm: Custom
    out: Path


def main() -> None:
    flags, forks = parse(Flags), []
    # a fork would go on with the examination, and make forks itself
    os.register_at_fork(before=lambda: forks.append(1), after_in_child=lambda: os._exit(0))
    try:
        examined = examine(flags.norm)
        if forks:
            raise Explained("it forks the process: compute in this one")
    except BaseException as e:  # of any kind, as the code is a user's
        kind = "" if isinstance(e, Explained) else f"{type(e).__name__}: "
        raise Explained(f"{flags.norm.name}: {kind}{' '.join(str(e).split())}") from None
    flags.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(flags.out, examined.model_dump_json())


if __name__ == "__main__":
    run_script(main)
