"""Prompts as tokens, with and without BOS, in right-padded batches of similar length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from normscope.errors import Explained
from normscope.hub.prompts import Prompt

PADDING = 0.2  # share of a batch at most
BATCH_TOKENS = 4096  # of a batch at most, padding included: what bounds its activations


class TokenizerError(Explained):
    """The tokenizer makes nothing of a prompt."""


@dataclass(frozen=True)
class PromptTokens:
    """One prompt as tokens."""

    prompt: Prompt
    bos: Literal["on", "off"]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, padded on the right.

    ``tokens`` and ``mask`` are (sequences, positions); ``last`` (sequences,) is the position of
    each sequence's last real token.
    """

    sequences: tuple[PromptTokens, ...]
    tokens: Tensor
    mask: Tensor
    last: Tensor


def tokenize(tokenizer: Any, prompts: Sequence[Prompt]) -> tuple[list[PromptTokens], bool | None]:
    """Every prompt without special tokens, and with a BOS before it if the tokenizer has one.

    Returns:
        The sequences, and whether the tokenizer itself puts a BOS there; None where it does
        neither, by which is meant that it adds other special tokens.

    Raises:
        TokenizerError: a prompt has no token.
    """
    bos = tokenizer.bos_token_id
    sequences, habits = [], set()
    for prompt in prompts:
        plain = tuple(tokenizer(prompt.text, add_special_tokens=False)["input_ids"])
        if not plain:
            raise TokenizerError(f"the tokenizer makes no token of the prompt {prompt.text!r}")
        sequences.append(PromptTokens(prompt, "off", plain))
        habit = tuple(tokenizer(prompt.text)["input_ids"])
        if bos is not None:
            sequences.append(PromptTokens(prompt, "on", (bos, *plain)))
        habits.add({plain: False, (bos, *plain): True}.get(habit))
    return sequences, habits.pop() if len(habits) == 1 else None


def grouped(lengths: Sequence[int]) -> list[list[int]]:
    """Indices in groups of similar length, longest first: padding is at most ``PADDING`` of each.

    Greedy over sorted lengths; a group also holds ``BATCH_TOKENS`` at most, if it has two members.
    """
    groups: list[list[int]] = []
    real = 0
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if groups:
            group = groups[-1]
            padded = lengths[group[0]] * (len(group) + 1)
            if real + lengths[i] >= (1 - PADDING) * padded and padded <= BATCH_TOKENS:
                group.append(i)
                real += lengths[i]
                continue
        groups.append([i])
        real = lengths[i]
    return groups


def batches(sequences: Sequence[PromptTokens], device: str) -> list[Batch]:
    """The sequences as few batches; what stands at padded positions no real one looks at."""
    made = []
    for group in grouped([len(s.tokens) for s in sequences]):
        members = tuple(sequences[i] for i in group)
        rows = [torch.tensor(s.tokens) for s in members]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        last = torch.tensor([len(row) - 1 for row in rows])
        mask = (torch.arange(tokens.shape[1]) <= last[:, None]).long()
        made.append(Batch(members, tokens.to(device), mask.to(device), last.to(device)))
    return made
