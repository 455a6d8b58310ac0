"""The interface of a study: its models, its jobs and its tables. No torch.

A study is a part of the configuration, which determines what ``results/<study>/`` contains:
``models`` with one folder per training job, ``probes`` with one per probing job, and ``tables``.
"""

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from normscope.columns import Table
from normscope.io.texts import DATASET
from normscope.schema import PositiveInt, Strict
from normscope.studies.pilot import Pilot, Tuned
from normscope.train.recipe import Device, Seeds, Stack, flops
from normscope.train.stacking import stack_mb
from normscope.verdicts.vocabulary import Vocabulary

FEWEST_RATES = 3  # learning rates of a cell that figures over rates show
MODEL_FILES = ("models.safetensors", "config.json", "curves.csv", "metrics.csv", "SHA256SUMS")


class Size(NamedTuple):
    """The size of a training job: its number of models, and their floating-point operations."""

    models: int
    flops: float


class Settings(Strict):
    """What all studies share."""

    level: float = Field(description="confidence level of every interval")
    baseline: list[str] = Field(description="jobs of the main study that others are compared with")
    pilot: Pilot = Pilot()


class Study(Strict, ABC):
    """A study: a part of the configuration, and the jobs that follow from it."""

    # what the workflow makes and reads of the study, below results/<study>/
    TABLES: ClassVar[Mapping[str, Table]] = {}  # the declarations of tables/*.csv by name
    TRAINS: ClassVar[bool] = True  # whether it trains models
    TRAINED: ClassVar[Sequence[str]] = MODEL_FILES  # files of each expensive result
    PROBED: ClassVar[Sequence[str]] = ()  # names of probes/{name}/*.csv, if the loop's rule probes
    PROBE_READS: ClassVar[Sequence[str]] = MODEL_FILES[:2]  # of every training job probed
    TABLES_READ: ClassVar[Sequence[str]] = ("metrics.csv", "curves.csv")  # of all training jobs
    READS_CORPUS: ClassVar[bool] = True
    FILES: ClassVar[Sequence[str]] = ()  # of data/, for its tables
    MODELS_OF: ClassVar[str | None] = None  # the study whose models its tables are made from

    def trainings(self) -> Mapping[str, Seeds]:
        """What each training job trains, by the name of its folder."""
        return {}

    def probes(self) -> Mapping[str, Strict]:
        """What each probing job measures, by the name of its folder."""
        return {}

    def job_texts(self) -> Mapping[str, str]:
        """The text that a training or probing job reads, by its name; others read the default."""
        return {}

    def probed(self, name: str) -> list[str]:
        """The training jobs whose models a probing job measures; by default that of its name."""
        return [name]

    def tabulated(self, settings: Settings) -> list[str]:
        """Files that its tables are made from, below ``results/``."""
        study = type(self).__name__.lower()
        probes = [f"probes/{name}/{table}.csv" for name in self.probes() for table in self.PROBED]
        models = [f"models/{name}/{file}" for name in self.trainings() for file in self.TABLES_READ]
        return [f"{study}/{path}" for path in (*probes, *models)]

    def context(self) -> int:
        """Tokens of the longest window of the corpus that its jobs read; 0 where they read none."""
        return 0

    def train_mb(self, stack: Any, device: Device) -> int:
        """Memory of a training job, in MB, by what it trains."""
        return 1500

    @abstractmethod
    def tabulation(self, settings: Settings) -> Strict:
        """The parameters of the job that makes the tables."""

    def vocabulary(self) -> Vocabulary:
        """The values that statements about its models may use, as far as they can be listed."""
        return Vocabulary()

    def records(self) -> list[str]:
        """Of every expensive result the file that says what it is, below ``results/<study>/``."""
        return [f"models/{name}/config.json" for name in self.trainings()]

    def training_sizes(self) -> Mapping[str, Size]:
        """The size of each training job, by the name of its folder."""
        return {}


Stacked = Annotated[
    PositiveInt,
    Field(
        default=3,
        description="seeds of a cell that one job trains, by their numbers: of each hundred the "
        "first so many, the next so many, ... Another seed leaves full jobs as they are",
    ),
]


class TrainedStudy(Study):
    """A study that trains models: a job trains several seeds of a cell."""

    GRIDS: ClassVar[Mapping[str, type]]  # by key: the class of its blocks, which have cells()

    stack: Stacked

    @abstractmethod
    def models(self) -> list[tuple[Any, int]]:
        """Cell and seed of every model, in the order of the configuration."""

    @abstractmethod
    def stack_of(self, cell: Any, seeds: list[int]) -> Any:
        """What a job with these seeds of a cell trains."""

    def text_of(self, cell: Any) -> str:
        """The text that the models of a cell learn."""
        return DATASET

    def blocks(self) -> dict[str, tuple[Any, list[int]]]:
        """Cell and seeds of every training job, by its name."""
        return blocks(self.models(), self.stack)

    def cells(self) -> dict[str, Any]:
        """The cell of every training job, by its name."""
        return {name: cell for name, (cell, _) in self.blocks().items()}

    def swept(self) -> list[Any]:
        """The cells that are trained at enough learning rates for a figure, without their rate."""
        tried = {cell: cell._replace(learning_rate=None) for cell, _ in self.models()}
        return [cell for cell, n in Counter(tried.values()).items() if n >= FEWEST_RATES]

    def trainings(self) -> dict[str, Any]:
        return {name: self.stack_of(*block) for name, block in self.blocks().items()}

    def tuned(self, settings: Settings) -> dict[str, Tuned]:
        """What the pilot models say of the cell of each training job."""
        study = type(self).__name__.lower()
        known = {name: settings.pilot.tuned(study, cell) for name, cell in self.cells().items()}
        return {name: tuned for name, tuned in known.items() if tuned}

    def job_texts(self) -> dict[str, str]:
        texts = {name: self.text_of(cell) for name, cell in self.cells().items()}
        return {name: text for name, text in texts.items() if text != DATASET}


class TransformerStudy(TrainedStudy):
    """A study that trains Transformers on texts."""

    PROBE_READS: ClassVar = (*TrainedStudy.PROBE_READS, "metrics.csv")  # which says what diverged

    def context(self) -> int:
        return max(stack.model.block_size for stack in self.trainings().values())

    def train_mb(self, stack: Stack, device: Device) -> int:
        return stack_mb(stack, device)

    def training_sizes(self) -> dict[str, Size]:
        stacks = self.trainings().items()
        return {name: Size(len(stack.seeds), flops(stack)) for name, stack in stacks}


class Grid(Strict):
    """One block of a configuration: the Cartesian product of its lists."""

    FACTORS: ClassVar[Mapping[str, str]]  # what varies, by the key of its list, in order

    def product(self) -> Iterator[dict[str, Any]]:
        """Every combination, as values by what varies; the last factor varies fastest."""
        lists = [getattr(self, key) for key in self.FACTORS]
        for values in itertools.product(*lists):
            yield dict(zip(self.FACTORS.values(), values, strict=True))


C = TypeVar("C")
T = TypeVar("T")


def blocks(models: Iterable[tuple[C, int]], size: int) -> dict[str, tuple[C, list[int]]]:
    """Cell and seeds of every training job, by its name: ``<cell>-<first seed>``.

    The numbers of a cell's seeds decide which of them share a job, so that another seed changes no
    job whose seeds it does not join, wherever the configuration lists it.

    Args:
        models: cell and seed of each.
        size: seeds that may share a job: 1 to size, the next as many, and so on; 101 starts anew.
    """
    groups: dict[C, dict[tuple[int, int], list[int]]] = {}
    for cell, seed in models:
        hundred, place = divmod(seed - 1, 100)
        groups.setdefault(cell, {}).setdefault((hundred, place // size), []).append(seed)
    return {
        f"{cell}-{min(seeds)}": (cell, sorted(seeds))
        for cell, by_number in groups.items()
        for _, seeds in sorted(by_number.items())
    }


def checked(where: str, build: Callable[[], T]) -> T:
    """What ``build`` makes of a part of the configuration.

    Raises:
        ValueError: it cannot be made, with where, and the first reason.
    """
    try:
        return build()
    except ValueError as e:
        first = e.errors()[0]["msg"] if isinstance(e, ValidationError) else str(e)
        raise ValueError(f"{where}: {first.removeprefix('Value error, ')}") from None
