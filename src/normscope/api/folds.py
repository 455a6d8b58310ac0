"""Gains and biases of the norms of a model, folded into its linear layers."""

import copy
from typing import NamedTuple

import pandas as pd
from torch import Tensor, nn

from normscope.api.arguments import public
from normscope.api.running import check_model, check_tokens, evaluating, logits, random_tokens
from normscope.errors import Explained
from normscope.measure.folding import fold as fold_in_place
from normscope.measure.frozen_norms import FrozenNorm
from normscope.measure.recognition import is_norm, norms


class Folded(NamedTuple):
    """A model whose norms are folded.

    Attributes:
        model: the copy, of the type of the model that was given.
        table: one row per norm, with the columns norm (its name), kind (its class), folded (whether
            it has no gain and no bias any more, or is gone), into (the names of the linear layers
            that took them; none if it had neither), adds_bias (whether one of these had no bias
            before) and problem (why it is not folded).
        change: the largest change of a logit, over the largest absolute logit, in float64.
    """

    model: nn.Module
    table: pd.DataFrame
    change: float


@public
def fold(model: nn.Module, tokens: Tensor | None = None, *, new_biases: bool = True) -> Folded:
    """Fold the gains and biases of a model's norms into the linear layers after them, exactly.

    ``W (gain * z + bias) + c = (W diag(gain)) z + (W bias + c)``. A folded norm keeps its class,
    with a gain of 1 and a bias of 0. A norm whose sigma is frozen (see ``remove``) disappears: the
    linear layers also take its centering and its division by sigma.

    The linear layers are those to which the output of the norm goes when the model runs. A norm
    does not change, and ``problem`` says why, if its output also goes elsewhere, such as to the
    residual connection after a post-norm or to the rotation of queries and keys, or if another part
    of the model uses the same weight: a head that is tied to the embedding. To fold the norm before
    such a head, give the head a copy of the matrix first. After each norm the logits are compared
    with those before in float64, where they may change by 1e-10 of the largest.

    What a call of the model returns stays the same. A module that the call does not run, such as a
    value head of another method, may read a norm, too: if its weights fit the width of a norm, the
    norm does not change, and ``problem`` names them. To fold it, give a model whose forward method
    runs that module. Norms change what other methods return of the stream behind them.

    torch's kernel for experts is not in float64: call ``set_experts_implementation("eager")`` of a
    mixture model of transformers before.

    transformers stores no bias that the configuration does not have: where ``adds_bias``, keep the
    model by ``state_dict`` and not by ``save_pretrained``, or give ``new_biases=False``, as the
    command ``normscope fold`` does, which writes a checkpoint.

    Args:
        model: a model that takes tokens and returns logits: of transformers, one that ``load``
            gives, or yours; it is not changed. The call needs memory for a copy in float64.
        tokens: (windows, positions), with which the model runs; by default 10 random ones, below
            the number of rows of its first embedding.
        new_biases: whether linear layers without a bias may get one. If not, a norm whose bias
            needs one does not change.

    Raises:
        Explained: the model has no norm, does not accept the tokens, or does not return logits; its
            logits are not finite or all 0; or folding a norm, which is named, changes them.
    """
    check_model(model)
    tokens = random_tokens(model) if tokens is None else tokens
    check_tokens(tokens, least=1)
    made = copy.deepcopy(model).double()
    foldable = {
        name: m for name, m in made.named_modules() if isinstance(m, FrozenNorm) or is_norm(m)
    } or norms(made)  # whose error says what is missing
    kinds = {name: type(norm).__name__ for name, norm in foldable.items()}
    with evaluating(made):
        _check_logits(made, tokens)
        folds = fold_in_place(made, foldable, lambda: logits(made, tokens), new_biases)
    _restore_types(made, model)
    rows = [
        {"norm": name, "kind": kinds[name], "folded": one.problem is None, "into": list(one.into)}
        | {"adds_bias": one.adds_bias, "problem": one.problem}
        for name, one in folds.items()
    ]
    return Folded(made, pd.DataFrame(rows), max(one.change for one in folds.values()))


def _check_logits(model: nn.Module, tokens: Tensor) -> None:
    """Check that a change of the logits can be measured relative to the largest."""
    values = logits(model, tokens)
    if not values.isfinite().all():
        raise Explained(f"the logits of {type(model).__name__} are not finite")
    if not values.any():
        raise Explained(f"the logits of {type(model).__name__} are all 0: train its head first")


def _restore_types(made: nn.Module, model: nn.Module) -> None:
    """Give the tensors of a copy the types that they have in a model; new ones that of a weight."""
    types = {n: t.dtype for n, t in (*model.named_parameters(), *model.named_buffers())}
    for name, t in (*made.named_parameters(), *made.named_buffers()):
        weight = f"{name.rpartition('.')[0]}.weight"
        t.data = t.data.to(types[name if name in types else weight])
