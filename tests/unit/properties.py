"""How many examples the property-based tests try: few in every run, more on demand."""

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("NORMSCOPE_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings for ``count`` examples, and ``NORMSCOPE_EXAMPLES`` times that on demand.

    An ordinary run repeats the same examples, so that it fails for everybody or for nobody.
    """
    return settings(
        max_examples=count * FACTOR,
        derandomize=FACTOR == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
