r"""The recall test's tasks and model: an embedding without positions, a post-norm block, a head.

Sizes, layers and initialization are the notebook's: one head, a GELU MLP of width 4d, torch's
default initialization. Only the last position is scored, and the tokens carry no position, which
allows two exact shortcuts (B sequences, T tokens, V vocabulary, C = d channels):

1. Where the norm looks at one token at a time, only the query's position needs to be computed.
   Its attention scores are ``e_j . k`` with ``k = W_k^T (W_q e_q + b_q) / sqrt(d)``; the key's bias
   adds the same to every score, which softmax does not see. The values are averaged before they
   are projected: ``W_v (sum_j w_j e_j) + b_v``, as the weights sum to 1.
2. Scores and values depend on which tokens meet, not where: they are computed once for the V
   tokens of the vocabulary and looked up.

BatchNorm in training looks at every position, so there the whole block is computed.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.custom import start
from normscope.nn.norms import build
from normscope.nn.recipe import Norm
from normscope.studies.recall.recipe import Task


class RecallModel(nn.Module):
    """Tokens (B, T) to logits (B, classes) for the last position's answer."""

    def __init__(self, task: Task, norm: Norm) -> None:
        super().__init__()
        d = self.d = task.n_embd
        self.sees_all = not norm.is_token_wise
        self.embedding = nn.Embedding(task.vocabulary, d)
        # holds the weights under torch's names and initialization; forward is written out below
        self.attention = nn.MultiheadAttention(d, num_heads=1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.norm1, self.norm2 = build(norm, d), build(norm, d)
        self.head = nn.Linear(d, task.classes)
        start(self)
        with torch.no_grad():
            self.embedding.weight.mul_(task.embedding_std)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.sees_all and self.training:
            return self.head(self.everywhere(tokens)[:, -1])
        return self.head(self.at_query(tokens))

    def at_query(self, tokens: Tensor) -> Tensor:
        """The block's output at the last position only, (B, C). Not for batch statistics."""
        E = self.embedding.weight  # (V, C)
        q = self.embedding(tokens[:, -1])  # (B, C)
        scores = (self._keys_for(q) @ E.T).gather(1, tokens)  # (B, T)
        weights = F.softmax(scores, dim=1)
        of_vocabulary = scores.new_zeros(len(tokens), len(E)).scatter_add(1, tokens, weights)
        return self._block(q, self._values(of_vocabulary @ E))

    def everywhere(self, tokens: Tensor) -> Tensor:
        """The block's output at every position, (B, T, C)."""
        E = self.embedding.weight
        V = len(E)
        scores = self._keys_for(E) @ E.T  # (V, V): row attends to column
        meets = tokens[:, :, None] * V + tokens[:, None, :]  # (B, T, T)
        weights = F.softmax(scores.view(-1).index_select(0, meets.view(-1)).view(meets.shape), -1)
        x, values = F.embedding(tokens, torch.cat([E, self._values(E)], 1)).chunk(2, -1)
        return self._block(x, weights @ values)

    def _keys_for(self, x: Tensor) -> Tensor:
        """What an embedding is multiplied with to be scored by ``x``: (..., C) to (..., C)."""
        wq, wk, _ = self.attention.in_proj_weight.chunk(3)
        bq, _, _ = self.attention.in_proj_bias.chunk(3)
        return F.linear(x, wq, bq) @ (wk / math.sqrt(self.d))

    def _values(self, x: Tensor) -> Tensor:
        """Attention's output for an average ``x`` of embeddings, (..., C) to (..., C)."""
        _, _, wv = self.attention.in_proj_weight.chunk(3)
        _, _, bv = self.attention.in_proj_bias.chunk(3)
        return self.attention.out_proj(F.linear(x, wv, bv))

    def _block(self, x: Tensor, attended: Tensor) -> Tensor:
        x = self.norm1(x + attended)
        return self.norm2(x + self.mlp(x))


def draw(task: Task, n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """``n`` sequences of a task (n, T), whose last token is the query, and answers (n,); int64."""
    return (_copy if task.kind == "copy" else _recall)(task, n, g)


def _copy(task: Task, n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """The notebook's draw: distinct keys, token 0 before the query, the query as the answer."""
    shown = task.entities + task.attributes
    # the largest of independent uniforms, in their order, are a uniform draw without replacement
    keys = torch.rand(n, task.entities * task.attributes, generator=g).topk(shown).indices
    query, context = keys[:, :1], keys[:, 1:]
    return torch.cat([context, torch.zeros_like(query), query], 1), query[:, 0].clone()


def _recall(task: Task, n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """A pair for every entity, in the order of entities: the model sees a set, not an order."""
    attributes = torch.randint(task.attributes, (n, task.entities), generator=g)
    entity = torch.randint(task.entities, (n, 1), generator=g)
    pairs = torch.arange(task.entities) * task.attributes + attributes
    query = task.entities * task.attributes + entity
    return torch.cat([pairs, query], 1), attributes.gather(1, entity)[:, 0]
