"""What would decide the open statements: seeds for 90% power, and what these cost here."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.config import Config
from normscope.cost.projection import Costs
from normscope.studies.study import Study

COLUMNS = ("statement", "why", "effect", "spread", "n", "needed", "minutes")


def seconds_a_model(study: Study, costs: Costs) -> float:
    """CPU seconds of training and measuring a model of a study, the mean over all of them."""
    models = sum(len(recipe.seeds) for recipe in study.trainings().values())
    return sum(costs.seconds(study.jobs()).values()) / models if models else math.nan


def power_table(
    ledger: Mapping[str, Any], contrasts: Mapping[str, str], config: Config, costs: Costs
) -> pd.DataFrame:
    """A row per open statement: what was seen, and what would decide it.

    Args:
        ledger: claims.json.
        contrasts: the study whose models a statement compares, by its key.
        config: of the run that the ledger is of.
        costs: of this machine.

    Returns:
        Columns statement, why, effect, spread (standard deviation of a seed, of logarithms on a
        logarithmic scale), n, needed (seeds that find such an effect with 90% power; NaN where no
        number of them was computed), minutes (of one core, for those beyond n).
    """
    price = {name: seconds_a_model(config.studies[name], costs) for name in set(contrasts.values())}
    rows = list(_rows(ledger["claims"], contrasts, price))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(
    claims: Iterable[Mapping[str, Any]], contrasts: Mapping[str, str], price: Mapping[str, float]
) -> Iterator[Sequence[Any]]:
    for claim in claims:
        if claim["verdict"] != "undecided":
            continue
        known = {k: math.nan if claim[k] is None else claim[k] for k in ("effect", "spread")}
        needed = math.nan if claim["units_needed"] is None else claim["units_needed"]
        more = max(0.0, needed - claim["n"]) * claim["models_a_unit"]
        minutes = more * price.get(contrasts.get(claim["key"], ""), math.nan) / 60
        yield claim["key"], claim["reason"], *known.values(), claim["n"], needed, minutes
