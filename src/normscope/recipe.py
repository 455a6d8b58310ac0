"""What one trained run is: norm, placement, seed, model and training settings.

These models are both a part of the configuration (``normscope.config``) and the command line of
``scripts/train.py``: one definition. They live apart from the rest of the configuration and from
the registry of arms, so that a new key or a new arm retrains no other model. No torch in here: the
workflow reads this module for every job.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Placement = Literal["pre", "post", "peri", "none"]
Attention = Literal["softmax", "sigmoid"]
Feedback = Literal["backprop", "fa", "dfa"]
Init = Literal["gpt2", "xavier"]
NormBackward = Literal["exact", "center_scale", "projected", "straight_through"]
SurrogatesIn = Literal["all", "blocks", "final"]


class Strict(BaseModel):
    """An unknown key is an error; values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def distinct(values: list) -> list:
    """The values; an error that names those given twice."""
    twice = sorted({str(v) for v in values if values.count(v) > 1})
    if twice:
        raise ValueError(f"given twice: {', '.join(twice)}")
    return values


Distinct = AfterValidator(distinct)
Some = Field(min_length=1)


class Norm(Strict):
    """The factors of a norm: ``gain * radius * project(center(x)) + bias``.

    ``statistic`` is taken per token, per channel over the batch, or not at all; without one, an
    ``elementwise`` map may bound the activations instead (DyT, Derf), or the layer is the identity.
    """

    statistic: Literal["token", "batch", "none"] = "token"
    center: bool = False
    radius: Literal["1", "sqrt(d)", "learned"] = "sqrt(d)"
    gain: bool = False
    bias: bool = False
    elementwise: Literal["tanh", "erf"] | None = None
    eps: PositiveFloat = 1e-5

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

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd ({self.n_embd}) must be a multiple of n_head ({self.n_head})")
        return self

    @model_validator(mode="after")
    def feedback_has_its_own_head(self) -> Self:
        if self.feedback != "backprop" and self.tied_head:
            raise ValueError(
                f"feedback {self.feedback} needs tied_head: false, as a tied embedding would "
                "receive the head's exact gradient beside the fed-back one"
            )
        return self


class Training(Strict):
    """AdamW with nanoGPT's schedule: linear warm-up, then a cosine from learning_rate to min_lr."""

    steps: PositiveInt = Field(description="optimizer steps")
    batch_size: PositiveInt = Field(description="windows of block_size tokens in a step")
    learning_rate: PositiveFloat = Field(description="peak learning rate")
    min_lr: NonNegativeFloat = Field(description="learning rate that the cosine ends at")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(description="steps of linear warm-up")
    weight_decay: NonNegativeFloat = Field(description="of AdamW")
    decays: Literal["matrices", "all"] = Field(
        default="matrices", description="what decays: matrices, or gains and biases too"
    )
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    grad_clip: NonNegativeFloat = Field(default=1.0, description="gradient norm; 0: off")
    eval_every: PositiveInt = Field(description="steps between losses on the val split")
    eval_tokens: PositiveInt | None = Field(
        default=None, description="of the val split, from its begin; without it the whole split"
    )
    log_every: PositiveInt = Field(default=10, description="steps averaged in one row of curve.csv")
    loss_bound: PositiveFloat = Field(description="a training loss above it is divergence")
    precision: Literal["fp32", "bf16"] = Field(
        description="of the branches and logits in training (bf16 is autocast); the residual "
        "stream, norms, losses, optimizer and every evaluation are fp32"
    )

    @model_validator(mode="after")
    def schedule_fits(self) -> Self:
        if self.min_lr > self.learning_rate:
            raise ValueError(f"min_lr ({self.min_lr}) exceeds learning_rate ({self.learning_rate})")
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) must be below steps ({self.steps})"
            )
        return self


class Run(Strict):
    """One trained model: all that decides its weights, beside the data."""

    norm: Norm
    placement: Placement
    seed: Seed
    model: Model
    training: Training

    @model_validator(mode="after")
    def norm_has_this_backward(self) -> Self:
        if self.model.norm_backward != "exact" and not self.norm.has_surrogates:
            raise ValueError(
                f"norm_backward {self.model.norm_backward} is defined for LayerNorm and RMSNorm: "
                "token statistics at radius sqrt(d)"
            )
        if self.model.surrogates_in != "all" and self.placement not in ("pre", "peri"):
            raise ValueError(
                f"surrogates_in {self.model.surrogates_in}: placement {self.placement} has no norm "
                "outside the blocks; give all"
            )
        return self

    @model_validator(mode="after")
    def evaluates_a_window(self) -> Self:
        tokens, T = self.training.eval_tokens, self.model.block_size
        if tokens is not None and tokens <= T:
            raise ValueError(f"eval_tokens ({tokens}) must exceed block_size ({T})")
        return self
