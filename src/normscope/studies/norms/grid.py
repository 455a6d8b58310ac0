"""The part of the configuration that trains every norm at its own learning rate. No torch."""

import math
from typing import Annotated, ClassVar, get_args

from normscope.nn.arms import ARMS
from normscope.nn.recipe import Placement
from normscope.schema import NonEmpty
from normscope.studies.norms import tables
from normscope.studies.norms.recipe import NormsTables
from normscope.studies.protocols import Baseline, ProtocolGrid, ProtocolStudy
from normscope.studies.study import Settings, Stages
from normscope.verdicts.vocabulary import Vocabulary


class Norms(ProtocolStudy):
    """One Transformer per protocol, norm, placement, text and seed, each norm at its own rate."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(tables_read=("metrics.csv",))

    runs: Annotated[list[ProtocolGrid], NonEmpty]
    baseline: Baseline

    def tabulation(self, settings: Settings) -> NormsTables:
        cells = dict.fromkeys(cell for cell, _ in self.models())
        return NormsTables(
            **self.model_tables(settings),
            arm=self.baseline.arm,
            placement=self.baseline.placement,
            rates=[
                (cell._replace(learning_rate=rate), loss if math.isfinite(loss) else None)
                for cell in cells
                for rate, loss in settings.pilot.losses_by_rate(self.name, cell).items()
            ],
        )

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            {"protocol": self.protocols, "arm": ARMS, "placement": get_args(Placement)}
        )
