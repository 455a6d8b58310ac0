"""A training job: pilot models, if they choose its rate, then its models and their files."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from normscope.io.texts import DATASET, text_folder, text_of
from normscope.schema import rate_name
from normscope.train.files import final_loss, write_models
from normscope.train.outputs import TrainingFlags, log
from normscope.train.plan import Plan
from normscope.train.recipe import Seeds
from normscope.train.runtime import Runtime
from normscope.train.schedule import PILOT, Sweep, least
from normscope.train.session import train
from normscope.train.stacking import models_per_stack
from normscope.train.trainer import Learner

Write = Callable[[Plan, list[Learner]], None]
Losses = Mapping[int, float | None]  # by seed; None for a model that diverged


class Job(NamedTuple):
    """How models are trained.

    Args:
        flags: Of the script.
        data: Directory of the corpus; those of further texts are in it.
        runtime: Device, threads and precision.
        prepare: What the models of a recipe learn from the data.
        code: Files whose code determines the weights.
    """

    flags: TrainingFlags
    data: Path | None
    runtime: Runtime
    prepare: Callable[[Any, Any], Plan]
    code: Sequence[Path]

    def run(self, recipe: Seeds) -> None:
        """Train the models of a recipe, and write them.

        Those of a ``Sweep`` are trained at the rate with the lowest mean loss of its pilot models.
        pilot.csv has learning_rate, seed and val_loss, which is empty where a pilot model diverged.
        Interrupted, a job continues with the models that it was training.
        """
        others: dict[str, str] = {}
        texts = [DATASET]
        if isinstance(recipe, Sweep):
            texts = recipe.texts
            pilots = {rate: self._pilots(recipe, rate) for rate in recipe.learning_rates}
            best = least({rate: _mean(losses) for rate, losses in pilots.items()})
            log(f"learning rate {best:g} is the best of {', '.join(f'{r:g}' for r in pilots)}")
            others[PILOT] = _table(pilots)
            recipe = recipe.at(best, recipe.seeds)

        def write(plan: Plan, learners: list[Learner]) -> None:
            config = {**plan.config, **self.runtime.record}
            moments = plan.keeps_moments
            write_models(self.flags.out, learners, config, moments=moments, others=others)

        self._train(recipe, texts, self.flags, write)

    def _pilots(self, sweep: Sweep, rate: float) -> Losses:
        """The losses of the pilot models at a learning rate, with checkpoints of their own."""
        folder, losses = self.flags.checkpoints / rate_name(rate), {}
        self._train(
            sweep.at(rate, sweep.pilot_seeds),
            sweep.texts,
            self.flags.model_copy(update={"checkpoints": folder, "timing": None}),
            lambda _, learners: losses.update({one.seed: final_loss(one) for one in learners}),
        )
        return losses

    def _train(
        self, recipe: Seeds, texts: Sequence[str], flags: TrainingFlags, write: Write
    ) -> None:
        seeds: dict[str, list[int]] = {}
        for seed in recipe.seeds:
            seeds.setdefault(text_of(texts, seed), []).append(seed)
        plans = [self.prepare(recipe, self.data and text_folder(self.data, t)) for t in seeds]
        plan, n = plans[0], len(recipe.seeds)
        together = models_per_stack(n, recipe.device, plan.tokens, plan.width) if plan.stacks else 1
        train(
            flags,
            recipe,
            [(one.problem, of_text) for one, of_text in zip(plans, seeds.values(), strict=True)],
            self.runtime,
            models_per_stack=together,
            code=self.code,
            data=[file for one in plans for file in one.data],
            write=lambda learners: write(plan, learners),
        )


def _mean(losses: Losses) -> float:
    return fmean(math.inf if loss is None else loss for loss in losses.values())


def _table(pilots: Mapping[float, Losses]) -> str:
    """The content of pilot.csv."""
    rows = [
        f"{rate_name(rate)},{seed},{'' if loss is None else repr(loss)}"
        for rate, losses in pilots.items()
        for seed, loss in losses.items()
    ]
    return "\n".join(["learning_rate,seed,val_loss", *rows])
