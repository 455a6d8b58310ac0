"""The one Transformer of every trained experiment.

nanoGPT's architecture and initialization (Radford et al. 2019) by default: learned positions,
blocks of attention and a 4x GELU MLP, a final norm, a head tied to the embedding. The norm, its
placement, residual connections, attention, causality, the head and what carries errors back
(``normscope.nn.feedback``) are choices.

Shapes: B windows, T tokens in a window, C = n_embd channels, H heads, V characters.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.dropout import Dropout
from normscope.nn.feedback import Errors, FeedbackLinear, catch, deliver
from normscope.nn.norms import Scale, build
from normscope.nn.penalty import penalized
from normscope.nn.recipe import Model, Norm, Placement

STD = 0.02  # of weights at the start, and of feedback matrices, which are drawn like them


def start_std(model: Model, name: str, weight: Tensor) -> float:
    """Standard deviation of a matrix (outputs, inputs) at the start.

    gpt2: 0.02, and where a branch ends divided by ``sqrt(2 n_layer)``, as so many branches add up
    (Radford et al. 2019, section 2.3). xavier: ``sqrt(2 / (inputs + outputs))`` in the blocks, with
    queries, keys and values a matrix each (Glorot & Bengio 2010, eq. 16, as Xiong et al. 2020 have
    it); embeddings and head as gpt2.
    """
    if model.init == "xavier" and name.startswith("blocks."):
        outputs, inputs = weight.shape
        return math.sqrt(2 / (inputs + (inputs if "qkv" in name else outputs)))
    return STD / math.sqrt(2 * model.n_layer) if name.endswith("proj.weight") else STD


def linear(model: Model, inputs: int, outputs: int, bias: bool) -> nn.Linear:
    """A linear layer that propagates errors through its weights, or through fixed ones (fa)."""
    kind = FeedbackLinear if model.feedback == "fa" else nn.Linear
    return kind(inputs, outputs, bias=bias)


class Attention(nn.Module):
    """Multi-head self-attention, written out.

    softmax: ``softmax(QK^T/sqrt(c) + mask) V``.
    sigmoid: ``sigmoid(QK^T/sqrt(c) - log n + mask) V`` (Ramapuram et al. 2024, arXiv:2409.04431),
    with n the number of keys that the query sees: its position + 1 if causal, else T.

    Written out because torch's fused CPU kernel is several times slower at these sizes where
    matrix products take oneDNN's path, as they do under ``normscope.train.runtime``.
    """

    mask: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.n_head, self.kind, self.dropout = model.n_head, model.attention, Dropout(model.dropout)
        self.qkv = linear(model, model.n_embd, 3 * model.n_embd, model.linear_bias)
        self.proj = linear(model, model.n_embd, model.n_embd, model.linear_bias)
        T = model.block_size
        mask = torch.full((T, T), -math.inf).triu(1) if model.causal else torch.zeros(T, T)
        self.causal = model.causal
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        H = self.n_head
        q, k, v = (
            self.qkv(x).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4).reshape(3, B * H, T, C // H)
        )
        # one kernel for scale, product and mask: (B*H, T, T)
        scores = torch.baddbmm(self.mask[:T, :T], q, k.transpose(1, 2), alpha=1 / math.sqrt(C // H))
        if self.kind == "softmax":
            weights = F.softmax(scores, dim=-1)
        else:
            seen = x.new_full((T,), T)
            if self.causal:
                seen = torch.arange(1, T + 1, dtype=x.dtype, device=x.device)
            weights = torch.sigmoid(scores - seen.log().view(T, 1))
        weights = self.dropout(weights)
        y = torch.bmm(weights, v).view(B, H, T, C // H).transpose(1, 2).reshape(B, T, C)
        return self.dropout(self.proj(y))


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

    pre:  x + f(N(x))       (Xiong et al. 2020, arXiv:2002.04745)
    post: N(x + f(x))       (Vaswani et al. 2017, arXiv:1706.03762)
    peri: x + N'(f(N(x)))   (Kim et al. 2025, arXiv:2502.02732; its optional norm of the embedding
                            is left out)
    none: x + f(x)
    """

    def __init__(self, f: nn.Module, norm: Norm, placement: Placement, model: Model) -> None:
        super().__init__()
        self.f, self.residual = f, model.residual
        at = {"pre": ["before"], "peri": ["before", "after"], "post": ["outside"], "none": []}
        rule = "exact" if model.surrogates_in == "final" else model.norm_backward
        self.before, self.after, self.outside = (
            build(norm, model.n_embd, rule, model.radial_share)
            if where in at[placement]
            else nn.Identity()
            for where in ("before", "after", "outside")
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.after(self.f(self.before(x)).to(x.dtype))  # autocast ends with the branch
        return self.outside(x + y if self.residual else y)


class Block(nn.Module):
    """Attention, then MLP: ``(B, T, C)`` to ``(B, T, C)``."""

    def __init__(self, norm: Norm, placement: Placement, model: Model) -> None:
        super().__init__()
        self.attention = Branch(Attention(model), norm, placement, model)
        self.mlp = Branch(MLP(model), norm, placement, model)

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
        placement: where the norms stand. pre and peri have a final norm, post and none have not.
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
        self.dropout = Dropout(model.dropout)
        self.blocks = nn.ModuleList(Block(norm, placement, model) for _ in range(model.n_layer))
        final = placement in ("pre", "peri")
        rule = "exact" if model.surrogates_in == "blocks" else model.norm_backward
        self.final_norm = (
            build(norm, model.n_embd, rule, model.radial_share) if final else nn.Identity()
        )
        self.sigma_penalty = model.sigma_penalty
        self.head = None if model.tied_head else linear(model, model.n_embd, vocab_size, False)
        self.apply(self._initialize)
        for name, p in self.named_parameters():
            if p.dim() == 2 and (std := start_std(model, name, p)) != STD:
                nn.init.normal_(p, std=std)
        # after the weights: for one seed these are the same under every kind of feedback
        for name, module in self.named_modules():
            if isinstance(module, FeedbackLinear):
                std = start_std(model, f"{name}.weight", module.weight)
                nn.init.normal_(module.feedback, std=std)
        direct = torch.randn(model.n_layer, model.n_embd, vocab_size) if self.is_direct else None
        self.register_buffer("direct_feedback", None if direct is None else STD * direct)

    @staticmethod
    def _initialize(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        T = tokens.shape[1]
        if self.block_size < T:
            raise ValueError(f"a window of {T} tokens exceeds block_size {self.block_size}")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:T]  # (B, T, C)
        x = self.dropout(self.embedding_scale(x))
        errors = Errors()
        for i, block in enumerate(self.blocks):
            x = block(x)
            if self.is_direct:
                x = deliver(x, self.direct_feedback[i], errors)
        if self.sigma_penalty and self.training:
            x = penalized(x, self.sigma_penalty)
        x = self.final_norm(x)
        logits = F.linear(x, self.token_embedding.weight) if self.head is None else self.head(x)
        logits = self.logit_scale(logits)
        return catch(logits, errors) if self.is_direct else logits


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats of logits ``(B, T, V)`` for targets ``(B, T)``, in fp32."""
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction=reduction)
