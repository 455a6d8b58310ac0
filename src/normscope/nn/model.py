"""The one Transformer of every trained experiment.

nanoGPT's architecture and initialization (Radford et al. 2019) by default: learned positions,
blocks of attention and a 4x GELU MLP, a final norm, a head tied to the embedding. The norm, its
placement, residual connections, attention, causality, the head and what carries errors back
(``normscope.nn.feedback``) are choices.

Shapes: B windows, T tokens in a window, C = n_embd channels, H heads, V characters.
"""

from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.attention import Attention
from normscope.nn.dropout import Dropout
from normscope.nn.feedback import Errors, catch, deliver, linear
from normscope.nn.initialization import STD, initialize
from normscope.nn.norms import Scale, build_at
from normscope.nn.penalty import add_penalty
from normscope.nn.recipe import (
    BRANCH_NORMS,
    WITH_FINAL_NORM,
    BranchPlace,
    BranchPlacement,
    Model,
    Norm,
    Placement,
    Sublayer,
    in_branches,
    norm_place,
)


class MLP(nn.Module):
    """``W2 gelu(W1 x)`` with a hidden width of 4C."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.fc = linear(model, model.n_embd, 4 * model.n_embd, model.linear_bias)
        self.proj = linear(model, 4 * model.n_embd, model.n_embd, model.linear_bias)
        self.dropout = Dropout(model.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.proj(F.gelu(self.fc(x))))


class Branch(nn.Module):
    """A sublayer f with its norms N and, unless switched off, its residual connection.

    pre:      x + f(N(x))            (Xiong et al. 2020, arXiv:2002.04745)
    post:     N(x + f(x))            (Vaswani et al. 2017, arXiv:1706.03762)
    peri:     x + N'(f(N(x)))        (Kim et al. 2025, arXiv:2502.02732; its norm of the embedding
                                     is ``Model.embedding_norm``)
    none:     x + f(x)
    lns:      x + f(N(x) / sqrt(l))  in block l = 1, 2, ... (Sun et al. 2025, arXiv:2502.05795)
    deepnorm: N(a x + f(x))          with a = (2 n_layer)^(1/4), as for decoders (Wang et al. 2022,
                                     arXiv:2203.00555; its start is in ``initialization``)

    Args:
        f: the sublayer.
        norm: factors of the norms.
        placement: where they stand.
        model: sizes and choices.
        block: l, which only lns depends on.
    """

    def __init__(
        self, f: nn.Module, norm: Norm, placement: BranchPlacement, model: Model, block: int = 1
    ) -> None:
        super().__init__()
        self.f, self.residual = f, model.residual
        sublayer: Sublayer = "attention" if isinstance(f, Attention) else "mlp"

        def norm_at(where: BranchPlace) -> nn.Module:
            if where not in BRANCH_NORMS[placement]:
                return nn.Identity()
            return build_at(norm_place(where, sublayer), norm, model.n_embd, model)

        self.before, self.after, self.outside = map(norm_at, get_args(BranchPlace))
        self.input_scale = block**-0.5 if placement == "lns" else 1.0
        self.stream_scale = (2 * model.n_layer) ** 0.25 if placement == "deepnorm" else 1.0

    def forward(self, x: Tensor) -> Tensor:
        h = self.before(x)
        h = h if self.input_scale == 1 else self.input_scale * h
        y = self.after(self.f(h).to(x.dtype))  # autocast ends with the branch
        if self.residual:
            y = (x if self.stream_scale == 1 else self.stream_scale * x) + y
        return self.outside(y)


class Block(nn.Module):
    """Attention, then MLP: ``(B, T, C)`` to ``(B, T, C)``."""

    def __init__(self, norm: Norm, placement: Placement, model: Model, block: int = 1) -> None:
        super().__init__()
        attention = Attention(model, norm, norms_qkv=placement == "hybrid")
        first, second = in_branches(placement, block, model.n_layer)
        self.attention = Branch(attention, norm, first, model, block)
        self.mlp = Branch(MLP(model), norm, second, model, block)

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.attention(x))


class Transformer(nn.Module):
    """Token indices ``(B, T)`` to logits ``(B, T, V)``.

    With feedback ``fa``, errors pass every linear layer (qkv, both projections, fc, head) through
    its feedback matrix. With ``dfa``, the gradient at each block's output is the error at the
    logits through a matrix of that block, ``direct_feedback`` (n_layer, C, V); within a block it is
    exact, and the embedding receives what the first block passes on. Norms and attention are exact
    in both. What the final norm passes back reaches no parameter under ``dfa``.

    Args:
        model: sizes and choices.
        norm: factors of the norm layers.
        placement: where the norms stand. post, deepnorm and none have no final norm, the others
            have one unless the model leaves it out.
        vocab_size: V.

    Raises:
        ValueError: a window is longer than block_size.
    """

    direct_feedback: Tensor

    def __init__(self, model: Model, norm: Norm, placement: Placement, vocab_size: int) -> None:
        super().__init__()
        self.block_size, self.is_direct = model.block_size, model.feedback == "dfa"
        self.token_embedding = nn.Embedding(vocab_size, model.n_embd)
        self.position_embedding = nn.Embedding(model.block_size, model.n_embd)
        self.embedding_scale, self.logit_scale = (
            Scale(model.n_embd) if is_scaled else nn.Identity()
            for is_scaled in (norm.embedding_scale, norm.logit_scale)
        )
        self.embedding_norm = (
            build_at("embedding", norm, model.n_embd, model)
            if model.embedding_norm
            else nn.Identity()
        )
        self.dropout = Dropout(model.dropout)
        self.blocks = nn.ModuleList(
            Block(norm, placement, model, i + 1) for i in range(model.n_layer)
        )
        has_final_norm = model.final_norm and placement in WITH_FINAL_NORM
        self.final_norm = (
            build_at("final", norm, model.n_embd, model) if has_final_norm else nn.Identity()
        )
        self.sigma_penalty = model.sigma_penalty
        self.head = None if model.tied_head else linear(model, model.n_embd, vocab_size, False)
        initialize(self, model, placement)
        direct = torch.randn(model.n_layer, model.n_embd, vocab_size) if self.is_direct else None
        self.register_buffer("direct_feedback", None if direct is None else STD * direct)

    def forward(self, tokens: Tensor) -> Tensor:
        T = tokens.shape[1]
        if self.block_size < T:
            raise ValueError(f"a window of {T} tokens exceeds block_size {self.block_size}")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:T]  # (B, T, C)
        x = self.dropout(self.embedding_norm(self.embedding_scale(x)))
        errors = Errors()
        for i, block in enumerate(self.blocks):
            x = block(x)
            if self.is_direct:
                x = deliver(x, self.direct_feedback[i], errors)
        if self.sigma_penalty and self.training:
            x = add_penalty(x, self.sigma_penalty)
        x = self.final_norm(x)
        logits = F.linear(x, self.token_embedding.weight) if self.head is None else self.head(x)
        logits = self.logit_scale(logits)
        return catch(logits, errors) if self.is_direct else logits


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats of logits ``(B, T, V)`` for targets ``(B, T)``, in fp32."""
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction=reduction)
