"""Recipes of trained models: norm, placement, seeds, Transformer, training, device. No torch."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from normscope.nn.recipe import Model, Norm, Placement
from normscope.schema import (
    Distinct,
    Fraction,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Seed,
    Some,
    Strict,
)

Device = Literal["cpu", "cuda"]


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
    log_every: PositiveInt = Field(default=10, description="steps averaged in a row of curves.csv")
    loss_bound: PositiveFloat = Field(description="a training loss above it is divergence")
    records_sigma: bool = Field(
        default=False,
        description="in curves.csv, the standard deviation of a token before the final norm, a "
        "mean over the batch of the row's step",
    )
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


class OnDevice(Strict):
    """A job whose numbers depend on the device in their last bits."""

    device: Device = "cpu"


class Seeds(OnDevice):
    """The models that one job trains; they differ only in their seeds."""

    seeds: Annotated[list[Seed], Some, Distinct]


class Stack(Seeds):
    """Transformers that one job trains: everything that determines their weights but the data."""

    norm: Norm
    placement: Placement
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
        if self.model.sigma_penalty and self.placement not in ("pre", "peri"):
            raise ValueError(
                f"sigma_penalty: placement {self.placement} has no final norm to hold; give 0"
            )
        return self

    @model_validator(mode="after")
    def evaluates_a_window(self) -> Self:
        tokens, T = self.training.eval_tokens, self.model.block_size
        if tokens is not None and tokens <= T:
            raise ValueError(f"eval_tokens ({tokens}) must exceed block_size ({T})")
        return self


def flops(stack: Stack) -> float:
    """Floating-point operations: 6 per parameter of a block and token, and those of attention."""
    d, length = stack.model.n_embd, stack.model.block_size
    tokens = len(stack.seeds) * stack.training.steps * stack.training.batch_size * length
    return 6.0 * tokens * stack.model.n_layer * (12 * d**2 + 2 * length * d)
