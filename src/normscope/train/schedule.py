"""Learning rates: a training at another one, and the choice of one by pilot models. No torch."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from normscope.io.texts import DATASET, TextName
from normscope.schema import Distinct, NonEmpty, Rate, Seed
from normscope.train.recipe import Stack, Training

PILOT = "pilot.csv"  # of the job of a sweep: the losses of its pilot models


class Sweep(Stack):
    """Transformers at the learning rate that pilot models choose, which the same job trains first.

    Args:
        learning_rates: The rates of the pilot models.
        pilot_seeds: Seeds that choose the learning rate, and are in no comparison.
        texts: What the models learn: each hundred of seeds has the next text.
    """

    learning_rates: Annotated[list[Rate], NonEmpty, Distinct]
    pilot_seeds: Annotated[list[Seed], NonEmpty, Distinct]
    texts: Sequence[TextName] = (DATASET,)

    def at(self, learning_rate: float, seeds: list[int]) -> Stack:
        """The models with these seeds at a learning rate."""
        fields = {name: getattr(self, name) for name in Stack.model_fields}
        training = at_schedule(self.training, learning_rate, self.training.warmup_steps)
        return Stack(**(fields | {"seeds": seeds, "training": training}))


def at_schedule(training: Training, peak: float, warmup_steps: int) -> Training:
    """Return the training with another peak and warm-up, and ``min_lr`` scaled with the peak."""
    end = peak * (training.min_lr / training.learning_rate)
    values = {"learning_rate": peak, "min_lr": end, "warmup_steps": warmup_steps}
    return Training.model_validate(training.model_dump() | values)


def least(losses: Mapping[float, float]) -> float:
    """The rate with the lowest loss, the smallest of several."""
    return min(sorted(losses), key=lambda rate: losses[rate])
