"""The two tasks: what a sequence holds, exactly, and how it is drawn, against theory."""

import numpy as np
import pytest
import torch
from recall_recipes import KINDS, task
from scipy import stats
from torch import Tensor

from normscope.studies.recall.recipe import Task
from normscope.studies.recall.tasks import draw

ALPHA = 1e-4  # with the seeds fixed, a test passes always or never
TASKS = pytest.mark.parametrize("kind", KINDS)
COPY, RECALL = (Task(kind=kind, steps=1) for kind in KINDS)  # the published sizes
N = 8000


def drawn(t: Task, n: int = N) -> tuple[Tensor, Tensor]:
    return draw(t, n, torch.Generator().manual_seed(1))


def test_copy_is_39_distinct_keys_then_token_0_then_another_key_which_is_the_answer():
    tokens, answers = drawn(COPY)
    assert (tokens.shape, answers.shape) == ((N, 41), (N,))
    assert tokens.dtype == answers.dtype == torch.int64
    keys = torch.cat([tokens[:, :39], tokens[:, 40:]], 1).sort(1).values
    assert (keys[:, 1:] > keys[:, :-1]).all()
    assert (keys[:, 0] >= 0).all()
    assert (keys[:, -1] < 400).all()
    assert (tokens[:, 39] == 0).all()
    assert torch.equal(tokens[:, 40], answers)


def test_every_sequence_of_a_small_copy_is_equally_likely():
    """Of six keys, five are shown: all 720 orders occur equally often."""
    tokens = drawn(task("copy", entities=2, attributes=3), 72_000)[0].numpy()
    codes = tokens[:, [5, 0, 1, 2, 3]] @ 6 ** np.arange(5)
    counts = np.bincount(codes, minlength=6**5)
    counts = counts[counts > 0]
    assert len(counts) == 720
    assert stats.chisquare(counts).pvalue > ALPHA


def test_recall_is_a_pair_for_every_entity_then_an_entity_whose_attribute_is_the_answer():
    tokens, answers = drawn(RECALL)
    assert (tokens.shape, answers.shape) == ((N, 21), (N,))
    assert tokens.dtype == answers.dtype == torch.int64
    entities, attributes = tokens[:, :20] // 20, tokens[:, :20] % 20
    assert torch.equal(entities, torch.arange(20).expand(N, 20))
    asked = tokens[:, 20] - 400
    assert asked.min() == 0
    assert asked.max() == 19
    assert torch.equal(answers, attributes[torch.arange(N), asked])


def test_every_sequence_of_a_small_recall_is_equally_likely():
    """Attributes and the asked entity are uniform, and independent of each other."""
    tokens = drawn(task("recall", entities=3, attributes=4), 48_000)[0].numpy()
    codes = (tokens[:, :3] % 4) @ 4 ** np.arange(3) * 3 + tokens[:, 3] - 12
    counts = np.bincount(codes, minlength=4**3 * 3)
    assert len(counts) == 4**3 * 3
    assert stats.chisquare(counts).pvalue > ALPHA


@TASKS
def test_a_seed_decides_the_batches_and_the_global_generator_does_not(kind):
    t = task(kind)
    batches = []
    for seed, noise in ((1, 0), (1, 7), (2, 0)):
        torch.manual_seed(noise)
        g = torch.Generator().manual_seed(seed)
        batches.append([draw(t, 5, g) for _ in range(3)])
    first, again, other = batches
    for one, same in zip(first, again, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(first[0][0], other[0][0])
    assert not torch.equal(first[0][0], first[1][0])
