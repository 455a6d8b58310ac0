"""Tokenize prompts, with and without BOS, and batch them by length with padding on the right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from normscope.errors import Explained
from normscope.hub.prompts import Prompt

PADDING = 0.2  # largest share of padding in a batch
BATCH_TOKENS = 4096  # most tokens in a batch, with padding: a bound for the activations


@dataclass(frozen=True)
class PromptTokens:
    """The tokens of one prompt, with or without BOS."""

    prompt: Prompt
    bos: Literal["on", "off"]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Several sequences, padded on the right.

    ``tokens`` and ``mask`` are (sequences, positions); ``last`` (sequences,) is the position of
    each sequence's last real token.
    """

    sequences: tuple[PromptTokens, ...]
    tokens: Tensor
    mask: Tensor
    last: Tensor


def tokenize(tokenizer: Any, prompts: Sequence[Prompt]) -> tuple[list[PromptTokens], bool | None]:
    """Tokenize every prompt without special tokens, and once more after a BOS if there is one.

    Returns:
        The sequences, and whether the tokenizer prepends a BOS by default; None if it adds other
        special tokens.
    """
    bos = tokenizer.bos_token_id
    sequences, adds_bos = [], set()
    for prompt in prompts:
        try:
            plain = tuple(tokenizer(prompt.text, add_special_tokens=False)["input_ids"])
        except Exception as e:  # tokenizers raises no more specific one
            raise Explained(
                f"the prompt {prompt.text!r} has words that are not in the vocabulary: give others "
                "(in the configuration, by the key prompts of this model)"
            ) from e
        if not plain:
            raise Explained(f"the tokenizer makes no token of the prompt {prompt.text!r}")
        sequences.append(PromptTokens(prompt, "off", plain))
        default = tuple(tokenizer(prompt.text)["input_ids"])
        if bos is not None:
            sequences.append(PromptTokens(prompt, "on", (bos, *plain)))
        adds_bos.add({plain: False, (bos, *plain): True}.get(default))
    return sequences, adds_bos.pop() if len(adds_bos) == 1 else None


def group_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Group indices greedily by length, from the longest to the shortest.

    A group with more than one member has at most ``BATCH_TOKENS`` tokens including padding, and a
    share of padding of at most ``PADDING``.
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
    """Batch the sequences; causal models never look at the padding, which comes last."""
    made = []
    for group in group_by_length([len(s.tokens) for s in sequences]):
        members = tuple(sequences[i] for i in group)
        rows = [torch.tensor(s.tokens) for s in members]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        last = torch.tensor([len(row) - 1 for row in rows])
        mask = (torch.arange(tokens.shape[1]) <= last[:, None]).long()
        made.append(Batch(members, tokens.to(device), mask.to(device), last.to(device)))
    return made
