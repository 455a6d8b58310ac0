# What jobs request: threads, memory, time, and the priorities by which they start. This file defines
# functions only.
def threads_of_training():
    """Threads that a one-thread training requests: 1, or more if --cores exceeds the machine's cores.

    Trainings that share a core evict each other's caches: on 2 cores, 4 at once are 12% slower
    than 2 and then 2. The script always uses one thread, so the results are the same.
    """
    if IS_CLUSTER:
        return 1  # each job has its cores to itself
    promised = workflow.resource_settings.cores or 1
    return max(1, min(promised, -(-promised // usable_cores())))


@functools.cache
def sizes():
    """The sizes of all training jobs, by rule and name."""
    return {f"{name}_train": part.training_sizes() for name, part in JOBS.items()}


def flops(rule):
    """The floating-point operations of a training job."""
    of_rule = sizes()[rule]
    return lambda wildcards: getattr(of_rule.get(wildcards.name), "flops", 0)


# Rules without a priority have 0, and trainings their floating-point operations. Before all trainings start the
# dataset, for which most jobs wait, and probes, whose results are awaited.
FIRST = 1e20


def longest_first(study):
    """Priorities of a study's trainings; those whose probe waits for several of them start first."""
    part, of_job = JOBS[study], flops(f"{study}_train")
    is_shared = any(len(part.probed(name)) > 1 for name in part.probes())
    return lambda wildcards: is_shared * FIRST / 2 + of_job(wildcards)


def per_attempt(amount):
    """A request that grows with each attempt; the amount may depend on the wildcards."""

    def request(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return request


SLOWEST = 1e10  # floating-point operations of a training per second, on a slow core


def minutes(rule):
    """The requested time of a training job. It grows with each attempt."""
    of_job = flops(rule)
    return per_attempt(
        lambda wildcards: 10 + math.ceil(of_job(wildcards) / SLOWEST / 60)
    )


def train_mb(part):
    """Memory of a training job of a study."""
    stacks = part.trainings()
    return per_attempt(lambda wildcards: part.train_mb(stacks[wildcards.name], DEVICE))


def timeout_s(wildcards):
    """Time limit for downloading a pretrained model, in seconds; 0 means no limit."""
    source = CONFIG.pretrained.by_name()[wildcards.name].source
    timeout = getattr(source, "timeout_s", None)
    return 0 if timeout is None else max(1, round(timeout))


def measure_mb(wildcards):
    """Memory of a measurement: the budget for weights, plus 2 GB for torch, activations and logits."""
    return round(CONFIG.pretrained.memory_gb * 1000) + 2000
