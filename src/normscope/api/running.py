"""Run a user's language model on tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.recognition import first_tensor

WINDOWS, POSITIONS = 2, 5  # of the random tokens that show how a model computes
BATCH = 1024  # tokens: a bound for the memory of logits


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout; each module's mode is restored."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def check_model(model: nn.Module) -> None:
    """Check that the weights of a model are in memory."""
    if empty := [name for name, p in model.named_parameters() if p.is_meta]:
        raise Explained(
            f"{empty[0]} of {type(model).__name__} is on the device meta and has no values: load "
            "the weights into memory, without offloading them"
        )


def split(tokens: Tensor) -> list[Tensor]:
    """Tokens (windows, positions) in parts whose logits fit into memory."""
    return list(tokens.split(max(1, BATCH // tokens.shape[1])))


def check_tokens(tokens: Tensor, least: int) -> None:
    """Check that the argument tokens holds token numbers, and windows of at least so many."""
    is_index = tokens.dtype in (torch.int64, torch.int32)
    if not is_index or tokens.dim() != 2 or tokens.shape[1] < least or not len(tokens):
        raise Explained(
            f"tokens is {tokens.dtype} of shape {tuple(tokens.shape)}: give token numbers, "
            f"(windows, positions), as int64, with at least {least} positions"
        )


def random_tokens(model: nn.Module) -> Tensor:
    """Tokens below the number of rows of the first embedding, on its device."""
    embedding = next((m for m in model.modules() if isinstance(m, nn.Embedding)), None)
    if embedding is None:
        raise Explained(f"{type(model).__name__} has no torch.nn.Embedding: give tokens")
    g = torch.Generator().manual_seed(0)
    tokens = torch.randint(embedding.num_embeddings, (WINDOWS, POSITIONS), generator=g)
    return tokens.to(embedding.weight.device)


def options(model: nn.Module) -> dict[str, Any]:
    """Without a cache of keys and values, which some classes of transformers need arguments for."""
    return {"use_cache": False} if hasattr(getattr(model, "config", None), "use_cache") else {}


def logits(model: nn.Module, tokens: Tensor, *, grad: bool = False) -> Tensor:
    """The logits (windows, positions, vocabulary) of a model for tokens (windows, positions).

    Args:
        grad: whether autograd records the pass.

    Raises:
        Explained: the model does not take the tokens, or does not return logits.
    """
    kind = type(model).__name__
    try:
        with torch.set_grad_enabled(grad):
            made = first_tensor(model(tokens, **options(model)))
    except Exception as e:  # of any kind, as the model is a user's
        reason = f"{type(e).__name__}: {' '.join(str(e).split())}"
        raise Explained(
            f"{kind} fails in {next(model.parameters()).dtype} on tokens of shape "
            f"{tuple(tokens.shape)} up to {int(tokens.max())} ({reason}): give tokens that it "
            "accepts, and a model that computes in this type"
        ) from e
    if made is None or made.shape[:-1] != tokens.shape or made.shape[-1] <= int(tokens.max()):
        raise Explained(
            f"{kind} does not return logits, (windows, positions, vocabulary), first, but "
            f"{'no tensor' if made is None else tuple(made.shape)} of tokens {tuple(tokens.shape)}:"
            " give a language model with a head, and one that returns the logits of all positions"
        )
    return made
