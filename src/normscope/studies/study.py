"""The interface of a study: its models, its jobs and its tables. No torch.

A study is a part of the configuration, which determines what ``results/<study>/`` contains:
``models`` with one folder per training job, ``probes`` with one per probing job, and ``tables``.
"""

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar, get_args

from pydantic import Field, ValidationError, model_validator

from normscope.columns import Table
from normscope.io.texts import DATASET
from normscope.nn.arms import check_placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Seed, Strict
from normscope.studies.pilot import Pilot, PilotChoice
from normscope.train.recipe import Device, Seeds, Stack, flops
from normscope.train.stacking import stack_mb
from normscope.verdicts.vocabulary import Vocabulary

FEWEST_RATES = 3  # learning rates of a cell that figures over rates show
MODEL_FILES = ("models.safetensors", "config.json", "curves.csv", "metrics.csv", "SHA256SUMS")


class Settings(Strict):
    """What all studies share."""

    level: float = Field(description="confidence level of every interval")
    baseline: list[str] = Field(description="jobs of the main study that others are compared with")
    pilot: Pilot = Pilot()


class Stages(NamedTuple):
    """The files of a study's jobs, which the workflow makes and reads.

    Args:
        model_files: Files of each expensive result.
        probe_tables: Names of ``probes/{name}/*.csv``, if rule ``<study>_probe`` makes them.
        probe_reads: Files of every training job that a probing job reads.
        tables_read: Files of all training jobs that the tables are made from.
        reads_corpus: Whether its jobs read a text.
        files: Files of ``data/`` that its tables are made from.
        models_of: The study whose models its tables are made from.
    """

    model_files: Sequence[str] = MODEL_FILES
    probe_tables: Sequence[str] = ()
    probe_reads: Sequence[str] = ("models.safetensors", "config.json", "metrics.csv")
    tables_read: Sequence[str] = ("metrics.csv", "curves.csv")
    reads_corpus: bool = True
    files: Sequence[str] = ()
    models_of: str | None = None


class Study(Strict, ABC):
    """A study: a part of the configuration, and the jobs that follow from it."""

    IN_PAPER: ClassVar[bool] = True  # whether its tables are parts of the paper
    TABLES: ClassVar[Mapping[str, Table]] = {}  # the declarations of tables/*.csv by name
    STAGES: ClassVar[Stages] = Stages()

    @property
    def name(self) -> str:
        """The name of its folder and of its key in the configuration."""
        return type(self).__name__.lower()

    def trainings(self) -> Mapping[str, Seeds]:
        """What each training job trains, by the name of its folder."""
        return {}

    def probes(self) -> Mapping[str, Strict]:
        """What each probing job measures, by the name of its folder."""
        return {}

    def job_texts(self) -> Mapping[str, Sequence[str]]:
        """The texts that a job reads, that of ``--data`` first; other jobs read the default."""
        return {}

    @property
    def texts_read(self) -> list[str]:
        """Names of all texts that its jobs read; the default text comes first."""
        return [*dict.fromkeys([DATASET, *itertools.chain(*self.job_texts().values())])]

    def jobs_of_probe(self, name: str) -> list[str]:
        """The training jobs whose models a probing job measures; by default that of its name."""
        return [name]

    def table_inputs(self, settings: Settings) -> list[str]:
        """Files that its tables are made from, below ``results/``."""
        stages = self.STAGES
        probes = [
            f"probes/{name}/{table}.csv" for name in self.probes() for table in stages.probe_tables
        ]
        models = [f"models/{n}/{file}" for n in self.trainings() for file in stages.tables_read]
        return [f"{self.name}/{path}" for path in (*probes, *models)]

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

    def training_flops(self) -> Mapping[str, float]:
        """The floating-point operations of each training job, by the name of its folder."""
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

    stack: Stacked

    @classmethod
    def grids(cls) -> dict[str, type["Grid"]]:
        """The class of the blocks of each key whose models are trained."""
        kinds = {key: get_args(field.annotation) for key, field in cls.model_fields.items()}
        return {
            key: kind[0]
            for key, kind in kinds.items()
            if kind and isinstance(kind[0], type) and issubclass(kind[0], Grid)
            if "learning_rates" in kind[0].model_fields
        }

    def models(self) -> list[tuple[Any, int]]:
        """Cell and seed of every model of the blocks; one that several blocks name counts once."""
        blocks = [grid for key in self.grids() for grid in getattr(self, key)]
        return list(
            dict.fromkeys((c, s) for grid in blocks for c in grid.cells() for s in grid.seeds)
        )

    @abstractmethod
    def stack_of(self, cell: Any, seeds: list[int]) -> Any:
        """What a job with these seeds of a cell trains."""

    def text_of(self, cell: Any, seed: int) -> str:
        """The text that a model learns."""
        return DATASET

    @cached_property
    def blocks(self) -> dict[str, tuple[Any, list[int]]]:
        """Cell and seeds of every training job, by its name."""
        return blocks(self.models(), self.stack, self.text_of)

    def cells(self) -> dict[str, Any]:
        """The cell of every training job, by its name."""
        return {name: cell for name, (cell, _) in self.blocks.items()}

    def rate_sweeps(self) -> list[Any]:
        """The cells that are trained at enough learning rates for a figure, without their rate."""
        cells = dict.fromkeys(self.cells().values())
        rates = Counter(cell._replace(learning_rate=None) for cell in cells)
        return [cell for cell, n in rates.items() if n >= FEWEST_RATES]

    @cached_property
    def stacks(self) -> dict[str, Any]:
        """What every training job trains, by its name."""
        return {name: self.stack_of(*block) for name, block in self.blocks.items()}

    def trainings(self) -> dict[str, Any]:
        return self.stacks

    def pilot_choices(self, settings: Settings) -> dict[str, PilotChoice]:
        """What the pilot models say of the cell of each training job."""
        cells = self.cells()
        known = {c: settings.pilot.choice(self.name, c) for c in dict.fromkeys(cells.values())}
        return {name: choice for name, cell in cells.items() if (choice := known[cell])}

    def job_texts(self) -> dict[str, list[str]]:
        blocks = self.blocks.items()
        texts = {name: self.text_of(cell, seeds[0]) for name, (cell, seeds) in blocks}
        return {name: [text] for name, text in texts.items() if text != DATASET}


class TransformerStudy(TrainedStudy):
    """A study that trains Transformers on texts."""

    def context(self) -> int:
        return max(stack.model.block_size for stack in self.stacks.values())

    def train_mb(self, stack: Stack, device: Device) -> int:
        return stack_mb(stack, device)

    def training_flops(self) -> dict[str, float]:
        return {name: flops(stack) for name, stack in self.stacks.items()}


class Grid(Strict):
    """One block of a configuration: a cell for every combination of the values in its lists."""

    CELL: ClassVar[type]  # a named tuple; each of its fields is a key of the block, or its plural

    seeds: Annotated[list[Seed], NonEmpty, Distinct]

    @classmethod
    @cache
    def keys(cls) -> dict[str, str]:
        """The key of every field of a cell."""
        forms = {field: (field, f"{field}s", f"{field[:-1]}ies") for field in cls.CELL._fields}
        return {f: next(k for k in names if k in cls.model_fields) for f, names in forms.items()}

    def cells(self) -> Iterator[Any]:
        """Every combination; the last field varies fastest."""
        values = [getattr(self, key) for key in self.keys().values()]
        lists = [value if isinstance(value, list) else [value] for value in values]
        yield from itertools.starmap(self.CELL, itertools.product(*lists))

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for cell in self.cells():
            if "placement" in cell._fields:
                check_placement(cell.arm, cell.placement)
        return self


C = TypeVar("C")
T = TypeVar("T")


def blocks(
    models: Iterable[tuple[C, int]], size: int, text_of: Callable[[C, int], str]
) -> dict[str, tuple[C, list[int]]]:
    """Cell and seeds of every training job, by its name: ``<cell>-<first seed>``.

    The numbers of a cell's seeds decide which of them share a job, so that another seed changes no
    job whose seeds it does not join, wherever the configuration lists it.

    Args:
        models: cell and seed of each.
        size: seeds that may share a job: 1 to size, the next as many, and so on; 101 starts anew.
        text_of: the text that a model learns; the seeds of a job share it.
    """
    groups: dict[C, dict[tuple[int, int, str], list[int]]] = {}
    for cell, seed in models:
        hundred, place = divmod(seed - 1, 100)
        key = (hundred, place // size, text_of(cell, seed))
        groups.setdefault(cell, {}).setdefault(key, []).append(seed)
    return {
        f"{cell}-{seeds[0]}": (cell, seeds)
        for cell, of_cell in groups.items()
        for seeds in sorted(map(sorted, of_cell.values()))
    }


def build_part(where: str, build: Callable[[], T]) -> T:
    """What ``build`` makes of a part of the configuration."""
    try:
        return build()
    except ValueError as e:
        first = e.errors()[0]["msg"] if isinstance(e, ValidationError) else str(e)
        raise ValueError(f"{where}: {first.removeprefix('Value error, ')}") from None
