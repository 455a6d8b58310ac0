"""The recipe of a Transformer: the factors of its norms, their placement, sizes and choices.

These models are a part of the configuration and of every job's parameters. They live apart from the
registry of arms, so that a new arm retrains no other model. No torch in here: the workflow reads
this module for every job.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from normscope.schema import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, Share, Strict

Placement = Literal["pre", "post", "peri", "none"]
Attention = Literal["softmax", "sigmoid"]
Feedback = Literal["backprop", "fa", "dfa"]
Init = Literal["gpt2", "xavier"]
NormBackward = Literal["exact", "center_scale", "projected", "straight_through"]
SurrogatesIn = Literal["all", "blocks", "final"]


class Norm(Strict):
    """The factors of a norm: ``gain * radius * project(center(x)) + bias``.

    ``statistic`` is taken per token, per channel over the batch, or not at all; without one, an
    ``elementwise`` map may bound the activations instead (DyT, Derf), or the layer is the identity.
    With some norms comes a learned factor outside of the blocks, started at sqrt(d).

    Adam moves every parameter about as far in a step, so that a gain that starts at 1 cannot become
    sqrt(d) within a short training. With ``log_rate`` gain and learned radius are
    ``exp(log_rate * p)``, ``p`` from 0: their logarithm has so many times the learning rate.
    """

    statistic: Literal["token", "batch", "none"] = "token"
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

    @model_validator(mode="after")
    def factors_fit(self) -> Self:
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
        if self.statistic == "none" and self.eps != 1e-5:
            raise ValueError("eps has no effect without a statistic: leave it out")
        return self

    @property
    def is_identity(self) -> bool:
        return self.statistic == "none" and self.elementwise is None

    @property
    def has_surrogates(self) -> bool:
        """LayerNorm or RMSNorm, with any affine part: what ``NormBackward`` is defined for."""
        return self.statistic == "token" and self.radius == "sqrt(d)"


class Model(Strict):
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
        "a branch ends (gpt2), or sqrt(2 / (inputs + outputs)) (xavier)",
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
