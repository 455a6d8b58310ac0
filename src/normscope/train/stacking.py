"""How many models are trained together."""

from normscope.train.recipe import Device, Stack

# Multiply-adds of a batch with a matrix (width, width) up to which a step of stacked models
# is faster than the separate steps; measured by benchmarks/stacking.py.
SMALL = 2**19


def models_per_stack(models: int, device: Device, tokens: int, width: int) -> int:
    """Return how many models are trained together: all of a job, or one.

    A step of small models is mostly the overhead of its kernels, which a stack shares. On a GPU
    nearly every model is small; on a CPU only those whose products take no longer than their
    launch.

    Args:
        models: number of models in the job.
        device: on which they are trained.
        tokens: tokens in a batch.
        width: width of the model.
    """
    return models if device == "cuda" or tokens * width**2 <= SMALL else 1


def stack_mb(stack: Stack, device: Device) -> int:
    """Estimate a job's memory: 1 GB, 8 numbers per parameter, 40 per activation of a block."""
    n, model = len(stack.seeds), stack.model
    tokens = stack.training.batch_size * model.block_size
    numbers = 8 * 12 * n * model.n_embd
    if device == "cpu":
        numbers += 40 * models_per_stack(n, device, tokens, model.n_embd) * tokens
    return 1000 + 4 * model.n_layer * model.n_embd * numbers // 10**6
