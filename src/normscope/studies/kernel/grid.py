"""The kernel study's part of the configuration. No torch."""

from typing import Annotated, ClassVar

from pydantic import Field

from normscope.nn.arms import ARMS, ArmName
from normscope.schema import Distinct, PositiveInt, Some
from normscope.studies.kernel.recipe import KernelTables
from normscope.studies.study import Settings, Study


class Kernel(Study):
    """The rank of a norm's Jacobian, width by width."""

    TABLES: ClassVar = ("ranks",)

    arms: Annotated[list[ArmName], Some, Distinct]
    widths: Annotated[list[PositiveInt], Some, Distinct]
    tokens: PositiveInt = Field(description="random tokens at which the Jacobian is taken")

    def tabulation(self, settings: Settings) -> KernelTables:
        norms = {arm: ARMS[arm].norm for arm in self.arms}
        return KernelTables(norms=norms, widths=self.widths, tokens=self.tokens)
