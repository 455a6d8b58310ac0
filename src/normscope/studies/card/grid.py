"""The card's part of the configuration: norms and a budget, which decides everything else."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from normscope.columns import Table
from normscope.errors import suggest
from normscope.io.texts import DATASET, TextName, text_of
from normscope.io.yamlfile import read_yaml
from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Model, Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Rate, Strict
from normscope.statistics.power import detectable
from normscope.studies.card import tables
from normscope.studies.card.recipe import (
    EVAL_TOKENS,
    REFERENCE,
    SWEPT,
    CardTables,
    Cell,
    Costs,
    NormProbe,
)
from normscope.studies.study import MODEL_FILES, Settings, Stages, Study
from normscope.train.recipe import Training, flops
from normscope.train.schedule import PILOT, Sweep

COMPARED = ("short", "long", "deep")  # regimes that answer the card's question
# the first six are in four packages; those of pilot models, two, come after the tested ones
TEXTS = f"""{DATASET} andersen mpmath proust prompt_toolkit woolf
joyce celery huxley asyncssh wells networkx austen dvc""".split()
TESTED = 12
FIRST_SEED, PILOT_SEED = 11, 100 * TESTED + 1  # of the compared, and of the pilot models
UNTRAINED = 6  # seeds of the untrained networks, as many as a verdict needs
# nats: over texts with one seed each, differences of norms that train about as well as LayerNorm
# have a standard deviation of 0.011 to 0.036, most below 0.015, in evidence/norms/models.csv
SPREAD = 0.015
WIDTHS, ROUNDS = (64, 256, 1024, 4096), 15  # of the measurement of speed
QUICK = ("demo", "5 min")  # budgets in which nothing is compiled, as a compiler takes a minute


class Regime(Strict):
    """How the norms of a card are trained, and how many models, of which each has the next text."""

    n_layer: PositiveInt = 2
    n_embd: PositiveInt = 64
    steps: PositiveInt = 300
    warmup_steps: Annotated[int, Field(ge=0)] = 30
    batch_size: PositiveInt = 8
    placement: Placement = "pre"
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct] = Field(default=[0.001, 0.003, 0.01])
    pilots: PositiveInt = 1
    seeds: PositiveInt = 2
    texts: Sequence[TextName] = TEXTS
    others: list[ArmName] = Field(default=[REFERENCE])

    @property
    def model(self) -> Model:
        """Sizes and choices; a head has 16 channels."""
        heads = self.n_embd // 16
        return Model(n_layer=self.n_layer, n_head=heads, n_embd=self.n_embd, block_size=32)

    @property
    def training(self) -> Training:
        """That of protocol ``small``, at the first learning rate."""
        rate = self.learning_rates[0]
        return Training(
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=rate,
            min_lr=rate / 10,
            warmup_steps=self.warmup_steps,
            weight_decay=0.1,
            eval_every=self.steps,
            eval_tokens=EVAL_TOKENS,
            log_every=30,
            loss_bound=20.0,
            precision="fp32",
        )


Regimes = Mapping[str, Regime]


@cache
def budgets() -> dict[str, Regimes]:
    """The regimes of every budget."""
    content = read_yaml(Path(__file__).with_name("budgets.yaml"))
    return {
        budget: {name: Regime.model_validate(regime) for name, regime in regimes.items()}
        for budget, regimes in content.items()
    }


def _known_budget(budget: str) -> str:
    if budget not in budgets():
        raise ValueError(f"there is no budget {budget!r}; {suggest(budget, budgets())}")
    return budget


class Card(Study):
    """The card of one or several norms."""

    IN_PAPER: ClassVar = False
    TABLES: ClassVar[Mapping[str, Table]] = tables.TABLES
    STAGES: ClassVar = Stages(
        model_files=(*MODEL_FILES, PILOT),
        probe_tables=tables.PROBED,
        tables_read=("metrics.csv", PILOT),
    )

    norm: Annotated[list[ArmName], NonEmpty, Distinct] = Field(
        description="arms, or file.py:Class and package.module:Class, with spaces between them"
    )
    budget: Annotated[str, AfterValidator(_known_budget)] = Field(
        default="5 min",
        description="what is trained: 5 min, 20 min or 1 h on two cores; demo tests nothing",
    )

    @property
    def regimes(self) -> Regimes:
        """The regimes of the budget by name."""
        return budgets()[self.budget]

    def cells(self) -> dict[str, Cell]:
        """The cell of every training job by its name, those of the card's norms first."""
        cells = {}
        for name, regime in self.regimes.items():
            for arm in dict.fromkeys([*self.norm, *regime.others]):
                if ARMS[arm].norm.is_identity and regime.placement != "pre":
                    continue  # without a norm there is no placement
                cells[f"{arm}-{name}-{self.budget.replace(' ', '')}"] = Cell(arm, name)
        return cells

    def trainings(self) -> dict[str, Sweep]:
        return {name: self._sweep(cell) for name, cell in self.cells().items()}

    def _sweep(self, cell: Cell) -> Sweep:
        regime, norm = self.regimes[cell.regime], ARMS[cell.arm].norm
        return Sweep(
            norm=norm,
            placement="none" if norm.is_identity else regime.placement,
            model=regime.model,
            training=regime.training,
            learning_rates=regime.learning_rates,
            # each seed is in the hundred of its text, and the texts take turns
            pilot_seeds=[PILOT_SEED + 100 * (i % 2) + i // 2 for i in range(regime.pilots)],
            seeds=[FIRST_SEED + 100 * (i % TESTED) + i // TESTED for i in range(regime.seeds)],
            texts=regime.texts,
        )

    def job_texts(self) -> dict[str, list[str]]:
        return {
            name: [*dict.fromkeys(text_of(one.texts, s) for s in (*one.seeds, *one.pilot_seeds))]
            for name, one in self.trainings().items()
        }

    def probes(self) -> dict[str, NormProbe]:
        return {
            name: NormProbe(
                norm=ARMS[cell.arm].norm,
                windows=64,
                texts=self.regimes[SWEPT].texts,
                depths=[12, 48],
                inits=["gpt2", "xavier"],
                seeds=[*range(FIRST_SEED, FIRST_SEED + UNTRAINED)],
            )
            for name, cell in self.cells().items()
            if cell.regime == SWEPT
        }

    def costs(self) -> Costs:
        """The norms whose speed is measured; an identity has none."""
        norms = {arm: ARMS[arm].norm for arm in self.norm if not ARMS[arm].norm.is_identity}
        usual = Regime()
        return Costs(
            norms=norms,
            model=usual.model,
            batch_size=usual.batch_size,
            learning_rate=usual.learning_rates[0],
            widths=list(WIDTHS),
            rounds=ROUNDS,
            compiles=self.budget not in QUICK,
        )

    def tabulation(self, settings: Settings) -> CardTables:
        texts = {name: regime.texts for name, regime in self.regimes.items()}
        return CardTables(jobs=self.cells(), texts=texts, level=settings.level)

    def resolution(self) -> dict[str, float]:
        """The difference in nats to LayerNorm that each comparison finds with probability 0.9.

        It assumes differences that scatter by ``SPREAD`` from text to text. NaN where the texts are
        too few to decide anything.
        """
        seeds = {name: self.regimes[name].seeds for name in COMPARED}
        return {name: detectable(min(n, TESTED), SPREAD) for name, n in seeds.items()}

    def context(self) -> int:
        return max(regime.model.block_size for regime in self.regimes.values())

    def training_flops(self) -> dict[str, float]:
        work = {}
        for name, sweep in self.trainings().items():
            models = len(sweep.pilot_seeds) * len(sweep.learning_rates) + len(sweep.seeds)
            stack = sweep.at(sweep.learning_rates[0], [*range(models)])
            work[name] = flops(stack)
        return work
