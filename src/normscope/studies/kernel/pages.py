"""The kernel of norms in a table."""

from collections.abc import Mapping

import pandas as pd

from normscope.paper.section import Section
from normscope.paper.table import Column, count, label, tabulate
from normscope.studies.kernel.grid import Kernel
from normscope.studies.study import Settings


def section(study: Kernel, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on kernels.

    Args:
        study: its configuration.
        tables: ranks.
    """
    columns = [
        Column("norm", label()),
        Column("d", count("d")),
        Column("removed, least", count("least")),
        Column("removed, most", count("greatest")),
    ]
    ranks = tabulate("Directions of a token that a norm removes", tables["ranks"], columns)
    return Section(words={"tokens": study.tokens}, tables={"ranks": ranks})
