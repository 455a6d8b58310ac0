"""Train one Transformer: bins to weights, curve and metrics. Started again, it continues."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.dataset import FILES
from normscope.train.outputs import TrainingFlags, say, write_run
from normscope.train.recipe import Run
from normscope.train.runtime import start
from normscope.train.session import session
from normscope.train.trainer import train

COLUMNS = ("step", "train_loss", "grad_norm", "learning_rate", "val_loss")


class Flags(TrainingFlags):
    """Train one model."""

    recipe: Run
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")


def main() -> None:
    flags = parse(Flags)
    run, data = flags.recipe, dataset.read(flags.data)
    runtime = start(run.training.precision, flags.threads)
    steps, files = run.training.steps, [flags.data / name for name in FILES]
    framed = session(flags, run, steps, runtime, script=Path(__file__), data=files)
    with framed as (checkpoints, progress):
        end = train(run, data, runtime, checkpoints, say=say, progress=progress)
        config = run.model_dump() | {"vocab_size": data.vocab_size} | runtime.recorded
        metrics = {
            "val_loss": end.val_loss.mean if end.val_loss else None,
            "val_loss_window_sd": end.val_loss.window_sd if end.val_loss else None,
            "train_loss": end.curve[-1]["train_loss"] if end.curve else None,
            "diverged_at": end.diverged_at,
        }
        write_run(
            flags.out,
            end.model,
            config=config,
            columns=COLUMNS,
            curve=end.curve,
            metrics=metrics,
        )
    loss = "none, it diverged" if end.val_loss is None else f"{end.val_loss.mean:.4f}"
    say(f"validation loss {loss}; outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
