"""Streamed block by block: the same numbers, each weight read once, no block left in memory."""

import dataclasses
import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from pretrained_models import (
    KINDS,
    LAYERS,
    all_batches,
    from_directory,
    in_memory,
    outcomes,
    random_model,
    rewrite,
    save,
    to_stream,
)
from safetensors.torch import load_file
from torch import Tensor

from normscope.hub import streaming
from normscope.hub.loading import Loaded, load
from normscope.hub.measurement import Outcome
from normscope.hub.streaming import Stream, TooLittleMemory, pieces
from normscope.hub.weights import BrokenWeights, Weights, shards


class Counting(Weights):
    """Says what was read, and which of the tensors read before were alive at each read."""

    def __init__(self, directory: Path, loaded: Loaded) -> None:
        super().__init__(shards(directory), loaded.model)
        self.asked: list[list[str]] = []
        self.alive: list[set[str]] = []
        self.given: list[tuple[str, weakref.ref]] = []

    def living(self) -> set[str]:
        return {name for name, given in self.given if given() is not None}

    def read(self, names: Iterable[str], device: str) -> dict[str, Tensor]:
        self.alive.append(self.living())
        self.asked.append(list(names))
        tensors = super().read(self.asked[-1], device)
        self.given += [(name, weakref.ref(t)) for name, t in tensors.items()]
        return tensors


def counted(directory: Path, memory_gb: float | None = None) -> tuple[Loaded, Counting]:
    """To be streamed, with at most the whole model in memory or what is given."""
    loaded = to_stream(directory)
    assert loaded.stream is not None
    counting = Counting(directory, loaded)
    limit = memory_gb or loaded.stream.memory_gb
    stream = Stream(loaded.model, counting, limit, "cpu")
    return dataclasses.replace(loaded, stream=stream), counting


def largest_piece(loaded: Loaded) -> int:
    """Bytes in fp32."""
    sizes = {n: 4 * p.numel() for n, p in loaded.model.named_parameters()}
    return max(sum(sizes[n] for n in part) for part in pieces(loaded.model, loaded.body))


@pytest.fixture(scope="module", params=KINDS)
def directory(request, tmp_path_factory) -> Path:
    return save(random_model(request.param), tmp_path_factory.mktemp(request.param))


def assert_same(ours: list[Outcome], theirs: list[Outcome], tolerance: float = 1e-6) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.batch.sequences == b.batch.sequences
        for i, sequence in enumerate(a.batch.sequences):
            real = slice(len(sequence.tokens))
            torch.testing.assert_close(
                a.norms[:, i, real], b.norms[:, i, real], rtol=tolerance, atol=0
            )
            assert (a.logits[i] - b.logits[i]).norm() <= tolerance * b.logits[i].norm()


def test_a_streamed_model_gives_what_it_gives_in_memory(directory):
    assert len(list(directory.glob("model-*.safetensors"))) > 3
    ours, theirs = to_stream(directory), in_memory(directory)
    expected = outcomes(theirs)
    assert_same(outcomes(ours), expected)
    assert_same(outcomes(ours), expected)  # and once more
    facts = theirs.facts | {"streamed": True}
    assert ours.facts == facts


def test_a_pass_reads_every_weight_of_a_block_once_and_others_once_for_each_end(directory):
    loaded, counting = counted(directory)
    outcomes(loaded)
    named = dict(loaded.model.named_parameters())
    of_blocks = {id(p) for block in loaded.body.blocks for p in block.parameters()}
    ends = [loaded.model.get_input_embeddings(), loaded.model.get_output_embeddings()]
    tied = ends[0].weight is ends[1].weight
    of_one_end = set() if tied else {id(p) for end in ends for p in end.parameters()}
    assert tied == loaded.model.config.tie_word_embeddings
    read = Counter(name for names in counting.asked for name in names)
    assert read.keys() == named.keys()
    for name, p in named.items():
        assert read[name] == (1 if id(p) in of_blocks | of_one_end else 2), name
    assert [set(names) for names in counting.asked[1:-1]] == [
        {n for n, p in named.items() if id(p) in {id(q) for q in block.parameters()}}
        for block in loaded.body.blocks
    ]


def test_while_a_block_computes_no_other_block_is_in_memory(directory):
    loaded = to_stream(directory)
    present: list[list[int]] = []

    def look(*_) -> None:
        blocks = enumerate(loaded.body.blocks)
        present.append([i for i, b in blocks if any(not p.is_meta for p in b.parameters())])

    for block in loaded.body.blocks:
        block.register_forward_hook(look)
    batches = all_batches(loaded)
    list(loaded.outcomes(batches))
    assert present == [[i] for i in range(LAYERS) for _ in batches]


def test_nothing_of_a_block_is_alive_after_it(directory):
    loaded, counting = counted(directory)
    outcomes(loaded)
    for i, alive in enumerate(counting.alive):
        in_use = set(counting.asked[i - 1]) if i else set()
        assert alive <= in_use, f"read {i}"
    gc.collect()
    assert all(given() is None for _, given in counting.given)
    assert all(p.is_meta for p in loaded.model.parameters())
    modules = list(loaded.model.modules())
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_weights_stored_in_16_bits_are_computed_in_fp32(tmp_path, dtype):
    directory = save(random_model("llama").to(dtype), tmp_path)
    ours, theirs = to_stream(directory), in_memory(directory)
    assert ours.facts["stored"] == {torch.bfloat16: "BF16", torch.float16: "F16"}[dtype]
    assert ours.facts["computed"] == "fp32"
    streamed, expected = outcomes(ours), outcomes(theirs)
    assert {o.logits.dtype for o in [*streamed, *expected]} == {torch.float32}
    assert_same(streamed, expected)


class Inline(nullcontext):
    """Reads at once: a thread lets go of what it read some time after it was taken."""

    def submit(self, read: Callable, *arguments: object) -> Future:
        future = Future()
        future.set_result(read(*arguments))
        return future


def test_where_only_one_piece_fits_none_is_alive_when_the_next_is_read(directory, monkeypatch):
    monkeypatch.setattr(streaming, "ThreadPoolExecutor", lambda _: Inline(Inline()))
    limit = largest_piece(to_stream(directory)) / 1e9
    loaded, counting = counted(directory, limit)
    assert_same(outcomes(loaded), outcomes(in_memory(directory)))
    sizes = {n: 4 * p.numel() / 1e9 for n, p in loaded.model.named_parameters()}
    for alive, names in zip(counting.alive, counting.asked, strict=True):
        assert sum(sizes[n] for n in [*alive, *names]) <= limit


def test_a_piece_above_the_limit_is_an_error_that_names_it(tmp_path):
    directory = save(random_model("gpt2"), tmp_path)
    largest = largest_piece(to_stream(directory))
    load(directory, from_directory(directory), largest / 1e9, "cpu")
    with pytest.raises(TooLittleMemory, match=r"transformer\.wte\.weight.*raise memory_gb"):
        load(directory, from_directory(directory), (largest - 1) / 1e9, "cpu")


def test_a_file_that_is_cut_meanwhile_is_an_error_that_names_it(tmp_path):
    directory = save(random_model("llama"), tmp_path)
    loaded = to_stream(directory)
    path = next(p for p in shards(directory) if any(".layers.2." in n for n in load_file(p)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BrokenWeights, match=path.name):
        outcomes(loaded)


def test_a_type_that_is_not_known_is_an_error_that_names_the_file(tmp_path):
    directory = save(random_model("llama"), tmp_path)
    loaded = to_stream(directory)
    ending = "layers.2.mlp.up_proj.weight"
    path, _ = rewrite(directory, ending, lambda t: t.to(torch.float8_e4m3fn))
    memory_gb = (4 * loaded.facts["parameters"] - 1) / 1e9
    with pytest.raises(BrokenWeights, match=path):
        load(directory, from_directory(directory), memory_gb, "cpu")
