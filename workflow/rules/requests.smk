# What jobs request: threads, memory, time, and the priorities by which they start. This file defines
# functions only.
def slots():
    """Threads that a one-thread training requests: 1, or more if --cores exceeds the machine's cores.

    Trainings that share a core evict each other's caches: on 2 cores, 4 at once are 12% slower
    than 2 and then 2. The script always uses one thread, so the results are the same.
    """
    if workflow.resource_settings.nodes is not None:
        return 1  # on a cluster, each job has its cores to itself
    promised = workflow.resource_settings.cores or 1
    return max(1, min(promised, -(-promised // usable_cores())))


# a cluster node may be slower than the reference machine by this factor
SLOWEST = 4


@functools.cache
def reference():
    """The measured costs of jobs on the reference machine."""
    return read_reference(Path(PROJECT, "workflow/costs.yaml"))


@functools.cache
def works():
    """Every job whose size depends on the configuration, by rule and name."""
    return {(job.rule, job.name): job for job in jobs(CONFIG)}


def sized(rule, name):
    """The job of this rule and name, with its amount of work."""
    return works().get((rule, name), once(rule))


@functools.cache
def paths():
    """The expected time from the start of each training and probe until its tables, in seconds."""
    return critical_paths(CONFIG, reference())


# Rules without a priority have 0. These start before all trainings and probes, whose priorities are seconds:
# most jobs wait for the dataset, and a job of several threads seldom finds as many idle cores later.
FIRST = 1e6


def longest_first(rule):
    """A priority by which the jobs start whose critical path is longest, so that none ends late."""
    return lambda wildcards: paths().get((rule, wildcards.name), 0)


def growing(amount):
    """A request that grows with each attempt; the amount may depend on the wildcards."""

    def request(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return request


def minutes(rule):
    """The requested time of a job, from its amount of work. It grows with each attempt."""

    def needed(wildcards):
        seconds = reference().seconds(sized(rule, wildcards.name))
        return 10 + math.ceil(SLOWEST * seconds / 60)

    return growing(needed)


def train_mb(part):
    """Memory of a training job of a study."""
    stacks = part.trainings()
    return growing(lambda wildcards: part.train_mb(stacks[wildcards.name], DEVICE))


def timeout_s(wildcards):
    """Time limit for downloading a pretrained model, in seconds; 0 means no limit."""
    source = CONFIG.pretrained.by_name()[wildcards.name].source
    timeout = getattr(source, "timeout_s", None)
    return 0 if timeout is None else max(1, round(timeout))


def measure_mb(wildcards):
    """Memory of a measurement: the budget for weights, plus 2 GB for torch, activations and logits."""
    return round(CONFIG.pretrained.memory_gb * 1000) + 2000


def of_card(wildcards):
    """The expected time of a training job of a card, which is its priority."""
    return reference().seconds(sized("card_train", wildcards.name))
