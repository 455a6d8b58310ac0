"""The recipe of a Transformer: the factors of its norms, their placement, sizes and choices.

These models are a part of the configuration and of every job's parameters. They live apart from the
registry of arms, so that a new arm retrains no other model. No torch in here: the workflow reads
this module for every job.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from normscope.schema import (
    ADDED,
    Fraction,
    GrowingModel,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Share,
)

# where the norms of a branch (attention or MLP) stand; mix and hybrid place those of whole blocks
BranchPlacement = Literal["pre", "post", "peri", "none", "lns", "deepnorm"]
Placement = Literal["pre", "post", "peri", "none", "lns", "mix", "hybrid", "deepnorm"]
PLACEMENTS: dict[str, str] = {
    "pre": "pre-norm",
    "post": "post-norm",
    "peri": "peri-norm",
    "none": "no norm",
    "lns": "LayerNorm Scaling",
    "mix": "Mix-LN",
    "hybrid": "HybridNorm",
    "deepnorm": "DeepNorm",
}
WITH_FINAL_NORM: tuple[Placement, ...] = ("pre", "peri", "lns", "mix", "hybrid")
Sublayer = Literal["attention", "mlp"]
SUBLAYERS: tuple[Sublayer, ...] = ("attention", "mlp")
# before or after the sublayer, or outside: after its sum with the stream
BranchPlace = Literal["before", "after", "outside"]
BRANCH_NORMS: dict[BranchPlacement, tuple[BranchPlace, ...]] = {
    "pre": ("before",),
    "post": ("outside",),
    "peri": ("before", "after"),
    "none": (),
    "lns": ("before",),
    "deepnorm": ("outside",),
}
# where a Transformer has norms: before attention or the MLP, after either, after their sum with the
# stream, on queries, keys and values, after the embedding, and before the head
NormPlace = Literal[
    "before_attention", "before_mlp", "after", "outside", "qkv", "embedding", "final"
]
Attention = Literal["softmax", "sigmoid"]
QKNorm = Literal["none", "head", "all"]
Feedback = Literal["backprop", "fa", "dfa"]
Init = Literal["gpt2", "gpt2_flat", "xavier"]
NormBackward = Literal["exact", "center_scale", "projected", "straight_through", "detached"]
SurrogatesIn = Literal["all", "blocks", "final"]


class Custom(GrowingModel):
    """A norm that is not a combination of factors: a class, and what an examination found of it.

    Its instances map ``(..., d)`` to ``(..., d)``.

    Args:
        name: ``file.py:Class`` or ``package.module:Class``.
        options: Arguments of the class, which is also given d.
        code: A digest of the file and of those that it imports from its folder, or the version of
            the package.
        folder: Where the file is, from the folder of the run; empty for a package.
        is_flat: Whether it takes tokens as ``(N, d)`` only, like torch's BatchNorm1d.
        is_token_wise: Whether the output for a token depends on this token alone.
        is_random: Whether it draws random numbers in training.
        stacks: Whether ``torch.func.vmap`` can train several of them together.
        is_exact: Whether its backward pass is the derivative of its forward pass.
    """

    name: str
    options: dict[str, Any] = Field(default={})
    code: str
    folder: str = ""
    is_flat: bool = False
    is_token_wise: bool = True
    is_random: bool = False
    stacks: bool = False
    is_exact: Annotated[bool, ADDED] = True


def by_key(values: dict[NormPlace, float]) -> dict[NormPlace, float]:
    """The same values in the order of their keys."""
    return dict(sorted(values.items()))


class Norm(GrowingModel):
    """The factors of a norm: ``gain * radius * project(center(x)) + bias``.

    ``statistic`` is taken per token, per channel over the batch, or not at all; without one, an
    ``elementwise`` map may bound the activations instead (DyT, Derf), or the layer is the identity.
    With some norms comes a learned factor outside of the blocks, started at sqrt(d). A norm that is
    no such combination has ``statistic: custom`` and no other factor.

    Adam moves every parameter about as far in a step, so that a gain that starts at 1 cannot become
    sqrt(d) within a short training. With ``log_rate`` gain and learned radius are
    ``exp(log_rate * p)``, ``p`` from 0: their logarithm has so many times the learning rate.
    """

    statistic: Literal["token", "batch", "none", "custom"] = "token"
    center: bool = False
    radius: Literal["1", "sqrt(d)", "learned"] = "sqrt(d)"
    gain: bool = False
    bias: bool = False
    elementwise: Literal["tanh", "erf"] | None = None
    alpha: PositiveFloat = Field(default=0.5, description="of an elementwise map at the start")
    embedding_scale: bool = Field(
        default=False, description="a learned factor of the embedding, sqrt(d) at the start"
    )
    logit_scale: bool = Field(
        default=False, description="a learned factor of the logits, sqrt(d) at the start"
    )
    eps: PositiveFloat = 1e-5
    log_rate: PositiveFloat | None = None
    custom: Annotated[Custom | None, ADDED] = None
    # in one order, so that equal recipes are the same bytes
    alpha_at: Annotated[dict[NormPlace, PositiveFloat], AfterValidator(by_key), ADDED] = Field(
        default={}, description="alpha of the norms at some places; at the others it is alpha"
    )

    @model_validator(mode="after")
    def factors_fit(self) -> Self:
        if (self.statistic == "custom") != (self.custom is not None):
            raise ValueError("statistic custom and a custom norm go together")
        factors = type(self).model_fields.keys() - {"statistic", "custom"}
        if self.custom and any(
            getattr(self, name) != type(self).model_fields[name].default for name in factors
        ):
            raise ValueError("a custom norm has no factors")
        if self.statistic == "batch" and not (self.center and self.radius == "sqrt(d)"):
            raise ValueError("batch statistics always center, at radius sqrt(d)")
        if self.elementwise and self.statistic != "none":
            raise ValueError("an elementwise map goes with statistic none")
        if self.statistic == "batch" and self.gain != self.bias:
            raise ValueError("batch statistics come with gain and bias, or with neither")
        if self.statistic == "none" and (self.center or self.radius != "sqrt(d)"):
            raise ValueError("without a statistic there is no center and no radius")
        if self.is_identity and (self.gain or self.bias):
            raise ValueError("an identity has no gain and no bias")
        is_sphere = self.statistic == "token" and self.radius != "sqrt(d)"
        if self.log_rate and not (is_sphere and (self.gain or self.radius == "learned")):
            raise ValueError("log_rate: only for a gain at radius 1 or a learned radius")
        if self.elementwise is None and self.alpha != 0.5:
            raise ValueError("alpha is a factor of elementwise maps only")
        if self.elementwise is None and self.alpha_at:
            raise ValueError("alpha_at is a factor of elementwise maps only")
        if self.statistic == "none" and self.eps != 1e-5:
            raise ValueError("eps has no effect without a statistic: leave it out")
        return self

    def at(self, place: NormPlace) -> "Norm":
        """The norm at a place, where it may have another alpha."""
        if not self.alpha_at:
            return self
        alpha = self.alpha_at.get(place, self.alpha)
        return self.model_copy(update={"alpha": alpha, "alpha_at": {}})

    @property
    def is_identity(self) -> bool:
        return self.statistic == "none" and self.elementwise is None

    @property
    def is_token_wise(self) -> bool:
        """Whether the output for a token depends on this token alone."""
        return self.custom.is_token_wise if self.custom else self.statistic != "batch"

    @property
    def stacks(self) -> bool:
        """Whether several models with this norm can be trained together."""
        return self.custom is None or self.custom.stacks

    @property
    def has_surrogates(self) -> bool:
        """LayerNorm or RMSNorm, with any affine part: what ``NormBackward`` is defined for."""
        return self.statistic == "token" and self.radius == "sqrt(d)"


class Model(GrowingModel):
    """The one Transformer; the defaults are nanoGPT's architecture."""

    n_layer: PositiveInt = Field(description="blocks")
    n_head: PositiveInt = Field(description="attention heads")
    n_embd: PositiveInt = Field(description="width d of the residual stream")
    block_size: PositiveInt = Field(description="context length in tokens")
    dropout: Fraction = Field(default=0.0, description="dropout probability")
    linear_bias: bool = Field(default=False, description="biases in the linear layers")
    residual: bool = Field(default=True, description="residual connections")
    attention: Attention = "softmax"
    causal: bool = True
    tied_head: bool = Field(default=True, description="output head shares the token embedding")
    init: Init = Field(
        default="gpt2",
        description="of the blocks' matrices: a standard deviation of 0.02, less with depth where "
        "a branch ends (gpt2), 0.02 everywhere (gpt2_flat), or sqrt(2 / (inputs + outputs)) "
        "(xavier)",
    )
    feedback: Feedback = Field(
        default="backprop",
        description="what carries errors back: each layer's own weights, fixed random matrices in "
        "their place (fa), or such matrices from the output to each block (dfa)",
    )
    norm_backward: NormBackward = Field(
        default="exact", description="backward pass of LayerNorm and RMSNorm"
    )
    surrogates_in: SurrogatesIn = Field(
        default="all", description="norms whose backward pass that is; the others' is exact"
    )
    radial_share: Share = Field(
        default=1.0, description="of the gradient's radial part, that center_scale leaves in"
    )
    sigma_penalty: NonNegativeFloat = Field(
        default=0.0,
        description="weight in the training loss of the mean of sigma^2, with sigma the standard "
        "deviation of a token before the final norm",
    )
    qk_norm: Annotated[QKNorm, ADDED] = Field(
        default="none",
        description="norms of queries and keys, over the channels of each head or over all",
    )
    embedding_norm: Annotated[bool, ADDED] = Field(
        default=False, description="a norm of the embedding"
    )
    final_norm: Annotated[bool, ADDED] = Field(
        default=True, description="the norm before the head, in placements that have one"
    )

    @model_validator(mode="after")
    def choices_fit(self) -> Self:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd ({self.n_embd}) must be a multiple of n_head ({self.n_head})")
        if self.radial_share != 1 and self.norm_backward != "center_scale":
            raise ValueError(f"norm_backward {self.norm_backward} takes no radial_share: give 1")
        if self.feedback != "backprop" and self.tied_head:
            raise ValueError(
                f"feedback {self.feedback} needs tied_head: false, as a tied embedding would "
                "receive the head's exact gradient in addition to the fed-back one"
            )
        return self


def in_branches(
    placement: Placement, block: int, n_layer: int
) -> tuple[BranchPlacement, BranchPlacement]:
    """The placements in the attention and the MLP of block 1, 2, ...

    mix: post in the first quarter of the blocks, at least in one, and pre in the others (Mix-LN,
    Li et al. 2024, arXiv:2412.13795).
    hybrid: ``y = x + attention(x)``, with norms of queries, keys and values in each head, and
    ``N(y) + mlp(N(y))`` (HybridNorm, Zhuo et al. 2025, arXiv:2503.04598).
    """
    if placement == "hybrid":
        return "post", "none"
    if placement == "mix":
        return ("post", "post") if block <= max(1, n_layer // 4) else ("pre", "pre")
    return placement, placement


def norm_place(where: BranchPlace, sublayer: Sublayer) -> NormPlace:
    """The place of a norm of a branch; only norms before a sublayer are told apart by it."""
    if where == "before":
        return "before_attention" if sublayer == "attention" else "before_mlp"
    return where


def norm_places(placement: Placement, model: Model) -> set[NormPlace]:
    """Where a Transformer has norms."""
    of_blocks: set[NormPlace] = {
        norm_place(where, sublayer)
        for block in {1, model.n_layer}  # no other has norms in another place
        for sublayer, branch in zip(
            SUBLAYERS, in_branches(placement, block, model.n_layer), strict=True
        )
        for where in BRANCH_NORMS[branch]
    }
    others: dict[NormPlace, bool] = {
        "qkv": placement == "hybrid" or model.qk_norm != "none",
        "embedding": model.embedding_norm,
        "final": model.final_norm and placement in WITH_FINAL_NORM,
    }
    of_model: set[NormPlace] = {place for place, is_there in others.items() if is_there}
    return of_blocks | of_model
