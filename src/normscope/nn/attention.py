"""Multi-head self-attention, and the norms of its queries, keys and values.

Shapes: B windows, T tokens in a window, C = n_embd channels, H heads.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.dropout import Dropout
from normscope.nn.feedback import linear
from normscope.nn.norms import build_at
from normscope.nn.recipe import Model, Norm, QKNorm

IDENTITY = Norm(statistic="none")


class Attention(nn.Module):
    """Multi-head self-attention, written out.

    softmax: ``softmax(QK^T/sqrt(c) + mask) V``.
    sigmoid: ``sigmoid(QK^T/sqrt(c) - log n + mask) V`` (Ramapuram et al. 2024, arXiv:2409.04431),
    with n the number of keys that the query sees: its position + 1 if causal, else T.

    With ``qk_norm``, Q and K are normalized first, each by its own norm: ``head`` over the c = C/H
    channels of each head, by the same gains in every head (Henry et al. 2020, arXiv:2010.04245;
    Dehghani et al. 2023, arXiv:2302.05442, with LayerNorm), or ``all`` over the C channels of all
    heads (OLMo 2, arXiv:2501.00656).

    Written out because torch's fused CPU kernel is several times slower at these sizes where
    matrix products take oneDNN's path, as they do under ``normscope.train.runtime``.

    Args:
        model: sizes and choices.
        norm: factors of the norms of Q and K.
        norms_qkv: normalize Q, K and V over each head, as HybridNorm does.
    """

    mask: Tensor

    def __init__(self, model: Model, norm: Norm = IDENTITY, *, norms_qkv: bool = False) -> None:
        super().__init__()
        self.n_head, self.kind, self.dropout = model.n_head, model.attention, Dropout(model.dropout)
        self.qkv = linear(model, model.n_embd, 3 * model.n_embd, model.linear_bias)
        self.proj = linear(model, model.n_embd, model.n_embd, model.linear_bias)
        over: QKNorm = "head" if norms_qkv else model.qk_norm
        self.norm_width = model.n_embd // model.n_head if over == "head" else model.n_embd
        self.q_norm, self.k_norm, self.v_norm = (
            build_at("qkv", norm, self.norm_width, model) if is_normed else nn.Identity()
            for is_normed in (over != "none", over != "none", norms_qkv)
        )
        self.normalizes = over != "none"
        T = model.block_size
        mask = torch.full((T, T), -math.inf).triu(1) if model.causal else torch.zeros(T, T)
        self.causal = model.causal
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        H = self.n_head
        q, k, v = self.heads(x)
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

    def heads(self, x: Tensor) -> Tensor:
        """Queries, keys and values of every head ``(3, B * H, T, C // H)``, after their norms."""
        B, T, C = x.shape
        H = self.n_head
        qkv = self.qkv(x)
        if self.normalizes:
            qkv = self._normalize(qkv.to(x.dtype))  # norms are fp32 under autocast too
        return qkv.view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4).reshape(3, B * H, T, C // H)

    def _normalize(self, qkv: Tensor) -> Tensor:
        """Queries, keys and values ``(B, T, 3C)``, each after its norm."""
        parts = qkv.chunk(3, dim=-1)
        norms = self.q_norm, self.k_norm, self.v_norm
        heads = [part.unflatten(-1, (-1, self.norm_width)) for part in parts]
        normed = [norm(part).flatten(-2) for norm, part in zip(norms, heads, strict=True)]
        return torch.cat(normed, dim=-1)
