"""The schedule of a training at another peak learning rate. No torch."""

from normscope.train.recipe import Training


def at_schedule(training: Training, peak: float, warmup_steps: int) -> Training:
    """Return the training with another peak and warm-up, and ``min_lr`` scaled with the peak.

    Raises:
        ValidationError: the settings contradict each other.
    """
    end = peak * (training.min_lr / training.learning_rate)
    values = {"learning_rate": peak, "min_lr": end, "warmup_steps": warmup_steps}
    return Training.model_validate(training.model_dump() | values)
