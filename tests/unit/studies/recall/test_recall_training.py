"""Training the decisive test: torch's Adam to the bit, the same batches for every arm."""

import pytest
import torch
from recall_recipes import KINDS, recall_run
from torch.nn import functional as F
from trainings import FP32, averages, problem_of, state, to_end, trained

from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import RecallStack, Task
from normscope.studies.recall.tasks import draw
from normscope.train.trainer import Trainer

TASKS = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm", "centered_scalenorm_affine", "none"])
@TASKS
def test_training_is_torchs_plain_loop_to_the_bit(arm, kind):
    stack = recall_run(arm, kind)
    task, (seed,) = stack.task, stack.seeds
    torch.manual_seed(seed)
    model = RecallModel(task, stack.norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=stack.learning_rate, fused=True)
    g = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(task.steps):
        tokens, answers = draw(task, task.batch_size, g)
        loss = F.cross_entropy(model(tokens), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    trainer = Trainer(problem_of(stack), [seed], FP32)
    assert to_end(trainer) == losses
    weights = state(trainer)
    assert all(torch.equal(weights[name], t) for name, t in model.state_dict().items())
    (learner,) = trainer.learners
    ends = [3, 6, 9, 11]  # each 3 steps and the last
    assert [row["step"] for row in learner.curve] == ends
    assert [row["train_loss"] for row in learner.curve] == averages(losses, ends)


def test_the_loss_at_the_end_is_of_one_more_batch_in_evaluation_mode():
    stack = recall_run("batchnorm")
    (learner,) = trained(stack).learners
    g = torch.Generator().manual_seed(1337)
    *_, (tokens, answers) = (draw(stack.task, stack.task.batch_size, g) for _ in range(12))
    with torch.no_grad():
        loss = F.cross_entropy(learner.model.eval()(tokens), answers).item()
    assert learner.val_loss is not None
    assert (learner.val_loss.mean, learner.val_loss.window_sd) == (loss, None)
    assert learner.curve[-1]["val_loss"] == loss


@pytest.mark.long
def test_unit_l2_at_step_1500():
    """The notebook's protocol at its size, against a number of another implementation.

    Another seed and other batches move the loss in the third digit.
    """
    task = Task(kind="copy", steps=1500)
    stack = RecallStack(task=task, norm=ARMS["manual_l2"].norm, learning_rate=1e-4, seeds=[1337])
    model = trained(stack).learners[0].model.eval()
    tokens, answers = draw(task, 2048, torch.Generator().manual_seed(0))
    with torch.no_grad():
        measured = F.cross_entropy(model(tokens), answers).item()
    assert measured == pytest.approx(5.02, abs=0.03)
