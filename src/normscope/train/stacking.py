"""How many models are worth training in step."""

from normscope.train.recipe import Device

# numbers in an activation, tokens of a batch times width, up to which a step of several models is
# faster than their steps one after the other: docs/howto/speed.md has the measurements
SMALL = 2**13


def in_step(models: int, device: Device, tokens: int, width: int) -> int:
    """Models that are trained at once: all of a job, or one.

    A step of small models is mostly the overhead of its kernels, which a stack shares. On a GPU
    nearly every model is small; on a CPU only those whose activations stay in its caches.

    Args:
        models: of a job.
        device: that trains them.
        tokens: of a batch.
        width: of the model.
    """
    return models if device == "cuda" or tokens * width <= SMALL else 1
