"""Train models of one shape at several rates, warm-ups and seeds, all at once."""

from pathlib import Path

import safetensors.torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.dataset import FILES
from normscope.io.files import write_bytes, write_json, write_sums
from normscope.studies.depth.recipe import EnsembleRecipe, Schedule
from normscope.train.ensemble import Ensemble
from normscope.train.outputs import TrainingFlags, say, write_rows
from normscope.train.resume import run_to_end
from normscope.train.runtime import start
from normscope.train.session import session
from normscope.train.trainer import Trainer

CURVE = ("step", "train_loss", "grad_norm")
LOSSES = ("val_loss", "val_loss_window_sd", "diverged_at")
KEYS = (*Schedule._fields, "seed")


class Flags(TrainingFlags):
    """Train the models of one shape."""

    recipe: EnsembleRecipe
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")


def write(out: Path, recipe: EnsembleRecipe, trainers: list[Trainer], config: dict) -> None:
    """The kept models, all curves, all losses, and last their SHA-256 sums."""
    weights, curves, losses = {}, [], []
    for ((schedule, seed), _), trainer in zip(recipe.runs().items(), trainers, strict=True):
        key = schedule._asdict() | {"seed": seed}
        if schedule == Schedule(**recipe.kept.model_dump()):
            state = trainer.model.state_dict()
            weights |= {f"{seed}.{name}": t.contiguous() for name, t in state.items()}
        curves += [key | {k: row.get(k) for k in CURVE} for row in trainer.curve]
        at_end = trainer.val_loss if trainer.diverged_at is None else None
        loss = (at_end.mean, at_end.window_sd) if at_end else (None, None)
        losses.append(key | dict(zip(LOSSES, (*loss, trainer.diverged_at), strict=True)))
    write_bytes(out / "models.safetensors", safetensors.torch.save(weights))
    write_json(out / "config.json", recipe.model_dump() | config)
    write_rows(out / "curves.csv", (*KEYS, *CURVE), curves)
    write_rows(out / "losses.csv", (*KEYS, *LOSSES), losses)
    write_sums(out, ["models.safetensors", "config.json", "curves.csv", "losses.csv"])


def main() -> None:
    flags = parse(Flags)
    recipe, data = flags.recipe, dataset.read(flags.data)
    runtime = start("fp32", flags.threads)
    trainers = [Trainer(run, data, runtime) for run in recipe.runs().values()]
    files, steps = [flags.data / name for name in FILES], recipe.training.steps
    framed = session(flags, recipe, steps, runtime, script=Path(__file__), data=files)
    with framed as (checkpoints, progress):
        run_to_end(Ensemble(trainers), checkpoints, say=say, progress=progress)
        config = {"vocab_size": data.vocab_size} | runtime.recorded
        write(flags.out, recipe, trainers, config)
    lost = sum(trainer.diverged_at is not None for trainer in trainers)
    say(f"{len(trainers)} models, {lost} diverged; outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
