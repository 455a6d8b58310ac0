"""The notebook's protocol at its own size, against numbers of another implementation."""

import pytest
import torch
from torch.nn import functional as F
from trainings import trained

from normscope.nn.arms import ARMS
from normscope.studies.recall.recipe import RecallStack, Task
from normscope.studies.recall.tasks import draw

STEPS = 1500


def test_unit_l2_at_step_1500():
    """Another seed and other batches move the loss in the third digit."""
    task = Task(kind="copy", steps=STEPS)
    stack = RecallStack(task=task, norm=ARMS["manual_l2"].norm, learning_rate=1e-4, seeds=[1337])
    model = trained(stack).learners[0].model.eval()
    tokens, answers = draw(task, 2048, torch.Generator().manual_seed(0))
    with torch.no_grad():
        measured = F.cross_entropy(model(tokens), answers).item()
    assert measured == pytest.approx(5.02, abs=0.03)
