"""Learning rates of a training at another peak. No torch."""

from normscope.train.recipe import Training


def at_peak(training: Training, peak: float) -> Training:
    """The same training at another peak, with the end of its cosine in proportion.

    Raises:
        ValidationError: the settings do not fit together.
    """
    end = peak * (training.min_lr / training.learning_rate)
    values = training.model_dump() | {"learning_rate": peak, "min_lr": end}
    return Training.model_validate(values)
