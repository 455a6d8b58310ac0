"""How the weights of the Transformer start."""

import math

import torch
from torch import Tensor, nn

from normscope.nn.custom import CustomNorm, start
from normscope.nn.feedback import FeedbackLinear
from normscope.nn.recipe import Model, Placement

STD = 0.02  # of weights at the start, and of feedback matrices, which are drawn like them


def start_std(model: Model, name: str, weight: Tensor) -> float:
    """Standard deviation that a matrix (outputs, inputs) is drawn with.

    gpt2: 0.02, and where a branch ends divided by ``sqrt(2 n_layer)``, as so many branches add up
    (Radford et al. 2019, section 2.3). xavier: ``sqrt(2 / (inputs + outputs))`` in the blocks, with
    queries, keys and values a matrix each (Glorot & Bengio 2010, eq. 16, as Xiong et al. 2020 have
    it); embeddings and head as gpt2.
    """
    if model.init == "xavier" and name.startswith("blocks."):
        outputs, inputs = weight.shape
        return math.sqrt(2 / (inputs + (inputs if "qkv" in name else outputs)))
    return STD / math.sqrt(2 * model.n_layer) if name.endswith("proj.weight") else STD


def deepnorm_beta(n_layer: int) -> float:
    """What DeepNorm multiplies matrices of a decoder by (Wang et al. 2022, arXiv:2203.00555)."""
    return (8 * n_layer) ** -0.25


def rescale(model: Model, placement: Placement, name: str, weight: Tensor) -> None:
    """Multiply a matrix that was drawn by what depends on depth, in place.

    gpt2_flat is gpt2 with the division by ``sqrt(2 n_layer)`` undone, so that for one seed both
    start in the same direction. DeepNorm's beta shrinks values, projections and the MLP, but
    neither queries nor keys.
    """
    if model.init == "gpt2_flat" and name.endswith("proj.weight"):
        weight.mul_(math.sqrt(2 * model.n_layer))
    if placement == "deepnorm" and name.startswith("blocks."):
        shrunk = weight[2 * model.n_embd :] if "qkv" in name else weight
        shrunk.mul_(deepnorm_beta(model.n_layer))


@torch.no_grad()
def initialize(net: nn.Module, model: Model, placement: Placement) -> None:
    """Draw the weights of a Transformer; custom norms keep what they drew themselves."""
    start(net)
    net.apply(_draw)
    custom = {p for m in net.modules() if isinstance(m, CustomNorm) for p in m.parameters()}
    for name, p in net.named_parameters():
        if p.dim() == 2 and p not in custom:
            if (std := start_std(model, name, p)) != STD:
                nn.init.normal_(p, std=std)
            rescale(model, placement, name, p)
    # after the weights: for one seed these are the same under every kind of feedback
    for name, module in net.named_modules():
        if isinstance(module, FeedbackLinear):
            std = start_std(model, f"{name}.weight", module.weight)
            nn.init.normal_(module.feedback, std=std)
            rescale(model, placement, f"{name}.weight", module.feedback)


def _draw(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=STD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
