"""LayerNorm replaced by RMSNorm in a pre-norm Transformer, with the same logits."""

import copy

import torch
from torch import Tensor, nn

from normscope.measure.hooks import norm_layers
from normscope.nn.model import MLP, Attention, Transformer
from normscope.nn.norms import TokenNorm


@torch.no_grad()
def recentred(model: Transformer) -> Transformer:
    """A copy in float64 in which nothing that is added to the stream has a mean, with RMSNorms.

    LayerNorm removes the mean of the stream over channels, and nothing else reads the stream in
    pre-norm. Without that mean, RMSNorm with the same gain and bias is the same function (Jiang et
    al. 2023, arXiv:2305.14858). A tied head becomes a separate matrix first, because the embedding
    is centered.

    Args:
        model: Pre-norm, with LayerNorms in the branches and before the head, and nowhere else.
    """
    model = copy.deepcopy(model).double()
    if model.head is None:
        vocab_size, d = model.token_embedding.weight.shape
        model.head = nn.Linear(d, vocab_size, bias=False)
        model.head.weight = nn.Parameter(model.token_embedding.weight.clone())
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


@torch.no_grad()
def change(model: Transformer, tokens: Tensor) -> float:
    """The largest change of a logit by ``recentred``, divided by the largest absolute logit.

    Args:
        model: See ``recentred``.
        tokens: (windows, T).
    """
    logits = copy.deepcopy(model).double()(tokens)
    return float((recentred(model)(tokens) - logits).abs().max() / logits.abs().max())
