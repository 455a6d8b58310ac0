"""Parameters of the recall test's jobs: what is trained, measured and tabulated. No torch."""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from normscope.nn.recipe import Norm
from normscope.schema import PositiveFloat, PositiveInt, Strict, rate_name
from normscope.studies.pilot import PilotChoice
from normscope.train.recipe import OnDevice, Seeds, Training


class Task(Strict):
    """The task of a model, and how long it is trained on it.

    ``copy`` is the task of Rahman's notebook ("Stability and Expression: The Dual-Mechanism of
    Normalization in Deep Learning", experiment 3): 40 distinct keys of ``entities x attributes``,
    39 of them as context, then token 0, then the 40th as query, which is also the answer. The
    answer is in the input whatever the context.

    ``recall`` is what that task is named after: a key is a pair (entity, attribute), the context
    holds one pair for every entity with attributes drawn anew each time, the query is an entity and
    the answer its attribute. Without the context nothing tells the answer.
    """

    kind: Literal["copy", "recall"]
    entities: Annotated[int, Field(gt=1)] = 20
    attributes: Annotated[int, Field(gt=1)] = 20
    n_embd: PositiveInt = Field(default=128, description="width d of the one block, of one head")
    embedding_std: PositiveFloat = Field(
        default=1.0, description="standard deviation of the embedding at the start; torch's is 1"
    )
    batch_size: PositiveInt = Field(default=128, description="sequences in a step")
    steps: PositiveInt = Field(description="optimizer steps")
    log_every: PositiveInt = Field(default=10, description="steps averaged in a row of curves.csv")
    loss_bound: PositiveFloat = Field(
        default=1000.0, description="a training loss above it is divergence"
    )

    @property
    def vocabulary(self) -> int:
        """Distinct tokens: the pairs, and the notebook's two unused ones or the queries."""
        pairs = self.entities * self.attributes
        return pairs + (2 if self.kind == "copy" else self.entities)

    @property
    def classes(self) -> int:
        """Distinct answers that the head can give."""
        return self.vocabulary if self.kind == "copy" else self.attributes

    @property
    def chance(self) -> float:
        """Accuracy of a guess that knows nothing of the input."""
        return 1 / (self.entities * self.attributes if self.kind == "copy" else self.attributes)


class Cell(NamedTuple):
    """All that varies between models, except the seed."""

    task: str
    arm: str
    learning_rate: float

    def __str__(self) -> str:
        """``copy-layernorm-0.0001``, the beginning of the names of its files."""
        return f"{self.task}-{self.arm}-{rate_name(self.learning_rate)}"


class RecallStack(Seeds):
    """Models that one job trains: all that decides their weights."""

    task: Task
    norm: Norm
    learning_rate: PositiveFloat = Field(description="of Adam, constant")

    @model_validator(mode="after")
    def norm_stands_alone(self) -> Self:
        if self.norm.embedding_scale or self.norm.logit_scale:
            raise ValueError("the recall test's model has no factor of the embedding or logits")
        return self

    @property
    def training(self) -> Training:
        """Adam as torch has it by default, at a constant rate; the notebook clips nothing."""
        return Training(
            steps=self.task.steps,
            batch_size=self.task.batch_size,
            learning_rate=self.learning_rate,
            min_lr=self.learning_rate,
            warmup_steps=0,
            weight_decay=0.0,
            beta1=0.9,
            beta2=0.999,
            grad_clip=0.0,
            eval_every=self.task.steps,
            log_every=self.task.log_every,
            loss_bound=self.task.loss_bound,
            precision="fp32",
        )


class RecallProbe(OnDevice):
    """The cell of every job that trains on a task, in order, and what is measured of its models."""

    jobs: dict[str, Cell]
    directions: PositiveInt = Field(description="filter-normalized slices of each model's loss")


class RecallTables(Strict):
    """The cell of every training job, the probing jobs, and where the factors are crossed."""

    jobs: dict[str, Cell]
    pilot: dict[str, PilotChoice] = Field(default={})
    probes: list[str]
    task: str
    learning_rate: float
    level: float
