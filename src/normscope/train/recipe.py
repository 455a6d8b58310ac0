"""Recipes of trained models: norm, placement, seeds, Transformer, training, device. No torch."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from normscope.nn.recipe import WITH_FINAL_NORM, Model, Norm, Placement, norm_places
from normscope.schema import (
    ADDED,
    Distinct,
    Fraction,
    GrowingModel,
    NonEmpty,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Seed,
    Strict,
)

Device = Literal["cpu", "cuda"]
Optimizer = Literal["adamw", "muon", "sgd"]


class Training(GrowingModel):
    """nanoGPT's schedule: linear warm-up, then a cosine from learning_rate to min_lr."""

    steps: PositiveInt = Field(description="optimizer steps")
    batch_size: PositiveInt = Field(description="windows of block_size tokens in a step")
    learning_rate: PositiveFloat = Field(description="peak learning rate")
    min_lr: NonNegativeFloat = Field(description="learning rate that the cosine ends at")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(description="steps of linear warm-up")
    weight_decay: NonNegativeFloat = Field(description="decoupled, as in AdamW")
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
    records_scales: bool = Field(
        default=False,
        description="in curves.csv, sigma before the final norm, the gain of the last block and "
        "the standard deviation of logits, on the batch of the row's step; with rows at the steps "
        "that are powers of two, too",
    )
    precision: Literal["fp32", "bf16"] = Field(
        description="of the branches and logits in training (bf16 is autocast); the residual "
        "stream, norms, losses, optimizer and every evaluation are fp32"
    )
    optimizer: Annotated[Optimizer, ADDED] = Field(
        default="adamw",
        description="muon trains the matrices of the blocks, and AdamW all else at a tenth of the "
        "learning rate; sgd has momentum and decoupled weight decay",
    )
    momentum: Annotated[Fraction, ADDED] = Field(default=0.95, description="of muon and sgd")
    train_tokens: Annotated[PositiveInt | None, ADDED] = Field(
        default=None, description="of the train split, from its begin; without it the whole split"
    )

    @model_validator(mode="after")
    def momentum_has_an_effect(self) -> Self:
        if self.optimizer == "adamw" and self.momentum != 0.95:
            raise ValueError("momentum has no effect with optimizer adamw: leave it out")
        return self

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

    seeds: Annotated[list[Seed], NonEmpty, Distinct]


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
        return self

    @model_validator(mode="after")
    def placement_has_these_norms(self) -> Self:
        model, placement = self.model, self.placement
        has_final_norm = placement in WITH_FINAL_NORM
        if not (model.final_norm or has_final_norm):
            raise ValueError(f"placement {placement} has no final norm to leave out: give true")
        has_final_norm &= model.final_norm
        where = f"placement {placement}" if model.final_norm else "final_norm false"
        if model.surrogates_in != "all" and not has_final_norm:
            raise ValueError(
                f"surrogates_in {model.surrogates_in}: {where} has no norm outside the blocks; "
                "give all"
            )
        if model.sigma_penalty and not has_final_norm:
            raise ValueError(f"sigma_penalty: {where} has no final norm to hold; give 0")
        if placement == "hybrid" and model.qk_norm != "none":
            raise ValueError("placement hybrid normalizes queries and keys: give qk_norm none")
        if self.norm.is_identity and (model.qk_norm != "none" or model.embedding_norm):
            raise ValueError("qk_norm and embedding_norm need a norm that is not an identity")
        known = norm_places(placement, model)
        if missing := sorted(self.norm.alpha_at.keys() - known):
            raise ValueError(
                f"alpha_at: placement {placement} has no norm {', '.join(missing)}; "
                f"this model has {', '.join(sorted(known))}"
            )
        return self

    @model_validator(mode="after")
    def reads_a_window(self) -> Self:
        T = self.model.block_size
        for key in ("train_tokens", "eval_tokens"):
            tokens = getattr(self.training, key)
            if tokens is not None and tokens <= T:
                raise ValueError(f"{key} ({tokens}) must exceed block_size ({T})")
        return self


def flops(stack: Stack) -> float:
    """Floating-point operations: 6 per parameter of a block and token, and those of attention."""
    d, length = stack.model.n_embd, stack.model.block_size
    tokens = len(stack.seeds) * stack.training.steps * stack.training.batch_size * length
    return 6.0 * tokens * stack.model.n_layer * (12 * d**2 + 2 * length * d)
