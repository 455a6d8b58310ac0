"""Small models that pages train, as a job of the workflow does."""

from pathlib import Path

from normscope.io import dataset
from normscope.io.dataset import Dataset
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.train.files import write_models
from normscope.train.problem import NextCharacter
from normscope.train.recipe import Stack, Training
from normscope.train.runtime import start
from normscope.train.trainer import Trainer

TEXT = Path(__file__).parents[1] / "CONTRIBUTING.md"


def train(job: Path, *, n_embd: int = 16, steps: int = 60) -> Dataset:
    """Train two pre-norm models with LayerNorm on a text of the project.

    Args:
        job: the folder of the job, which is made.
        n_embd: channels.
        steps: of the training.

    Returns:
        The text.
    """
    stack = Stack(
        norm=ARMS["layernorm"].norm,
        placement="pre",
        seeds=[1, 2],
        model=Model(n_layer=2, n_head=2, n_embd=n_embd, block_size=16),
        training=Training(
            steps=steps,
            batch_size=8,
            learning_rate=0.01,
            min_lr=0.001,
            warmup_steps=5,
            weight_decay=0.1,
            eval_every=steps,
            loss_bound=20.0,
            precision="fp32",
        ),
    )
    data = dataset.encode(TEXT.read_text())
    trainer = Trainer(NextCharacter(stack, data), stack.seeds, start("fp32", 1, "cpu"))
    while not trainer.is_done:
        trainer.advance()
    write_models(job, trainer.learners, stack.model_dump() | {"vocab_size": data.vocab_size})
    return data
