"""Learning rates of a training at another peak. No torch."""

from normscope.train.recipe import Training


def at_schedule(training: Training, peak: float, warmup_steps: int) -> Training:
    """The same training at another peak and warm-up, with the end of its cosine in proportion.

    Raises:
        ValidationError: the settings do not fit together.
    """
    end = peak * (training.min_lr / training.learning_rate)
    values = {"learning_rate": peak, "min_lr": end, "warmup_steps": warmup_steps}
    return Training.model_validate(training.model_dump() | values)
