"""Pre-norm Transformers with other norms and the same logits."""

import copy

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.folding import fold
from normscope.measure.hooks import norm_layers
from normscope.nn.model import MLP, Attention, Transformer
from normscope.nn.norms import TokenNorm


def fold_norms(model: Transformer, *, final: bool = False) -> Transformer:
    """A copy in float64 with the same logits, whose block norms have neither gain nor bias.

    Args:
        model: Pre-norm, with norms that have an affine part.
        final: Also fold the final norm, into the head.
    """
    model = copy.deepcopy(model).double().eval()
    names = [name for name, _ in model.named_modules() if name.endswith(".before")]
    if final:
        names.append("final_norm")
        _untie_head(model)
    model.requires_grad_(False)
    tokens = torch.zeros(1, 1, dtype=torch.int64, device=model.token_embedding.weight.device)
    norms = {name: model.get_submodule(name) for name in names}
    for name, outcome in fold(model, norms, lambda: model(tokens)).items():
        if outcome.problem:
            raise Explained(f"{name} cannot be folded: {outcome.problem}")
    return model


@torch.no_grad()
def center_stream(model: Transformer) -> Transformer:
    """A copy in float64 in which nothing that is added to the stream has a mean, with RMSNorms.

    LayerNorm removes the mean of the stream over channels, and nothing else reads the stream in
    pre-norm. Without that mean, RMSNorm with the same gain and bias is the same function (Jiang et
    al. 2023, arXiv:2305.14858).

    Args:
        model: Pre-norm, with LayerNorms in the branches and before the head, and nowhere else.
    """
    model = copy.deepcopy(model).double()
    _untie_head(model)
    for embedding in (model.token_embedding, model.position_embedding):
        embedding.weight.sub_(embedding.weight.mean(1, keepdim=True))
    for sublayer in model.modules():
        if isinstance(sublayer, Attention | MLP):
            last = sublayer.proj
            last.weight.sub_(last.weight.mean(0, keepdim=True))
            if last.bias is not None:
                last.bias.sub_(last.bias.mean())
    for norm in norm_layers(model).values():
        assert isinstance(norm, TokenNorm)
        norm.center = False
    return model


def _untie_head(model: Transformer) -> None:
    """Give a tied head a matrix of its own, because the embedding must not change with it."""
    if model.head is None:
        vocab_size, d = model.token_embedding.weight.shape
        model.head = nn.Linear(d, vocab_size, bias=False)
        model.head.weight = nn.Parameter(model.token_embedding.weight.detach().clone())


@torch.no_grad()
def logit_change(model: Transformer, other: Transformer, tokens: Tensor) -> float:
    """The largest change of a logit from a model to another, over the largest absolute logit.

    Args:
        model: it runs in float64.
        other: in float64.
        tokens: (windows, T).
    """
    logits = copy.deepcopy(model).double()(tokens)
    return float((other(tokens) - logits).abs().max() / logits.abs().max())
