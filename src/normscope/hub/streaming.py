"""A model larger than the memory for its weights: block by block, each weight read once.

Every batch's forward pass is the model's own, run as a greenlet: a hook at each block's entrance
gives control back, so that all batches pass one block before the next one's weights are read. While
a block computes, the weights of the next are read.
"""

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import init_empty_weights
from greenlet import getcurrent, greenlet
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AutoModelForCausalLM, PreTrainedModel

from normscope.errors import Explained
from normscope.hub.architecture import Body
from normscope.hub.batching import Batch
from normscope.hub.measurement import Outcome, last_logits
from normscope.hub.weights import Weights
from normscope.measure.residual import Recorder, recording

GB = 1e9  # bytes


class TooLittleMemory(Explained):
    """A part of the model that is needed as a whole exceeds the memory for weights."""


def skeleton(config: Any, attention: str) -> PreTrainedModel:
    """The model with its buffers, and parameters that have no memory yet."""
    with init_empty_weights(include_buffers=False):
        model = AutoModelForCausalLM.from_config(
            config, attn_implementation=attention, trust_remote_code=False
        )
    model.tie_weights()
    return model.eval()


def pieces(model: PreTrainedModel, body: Body) -> list[list[str]]:
    """Names of parameters in the order of need: what comes before the blocks, each block, the rest.

    Parameters outside the blocks are read for both ends, but for an embedding or a head that only
    one end uses.
    """
    named = dict(model.named_parameters())  # a tied weight has one name
    block_ids = [{id(p) for p in block.parameters()} for block in body.blocks]
    inside = set().union(*block_ids)
    outside = {name: id(p) for name, p in named.items() if id(p) not in inside}
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    first_ids, last_ids = ({id(p) for p in m.parameters()} if m else set() for m in (first, last))
    before = [name for name, p in outside.items() if p not in last_ids - first_ids]
    after = [name for name, p in outside.items() if p not in first_ids - last_ids]
    blocks = [[n for n, p in named.items() if id(p) in ids] for ids in block_ids]
    return [before, *blocks, after]


def piece_sizes(model: PreTrainedModel, parts: Sequence[Sequence[str]]) -> list[float]:
    """GB of each piece in fp32."""
    named = dict(model.named_parameters())
    return [sum(named[name].numel() * 4 for name in names) / GB for names in parts]


def check_memory(model: PreTrainedModel, parts: Sequence[Sequence[str]], memory_gb: float) -> None:
    """Whether every piece fits in fp32.

    Raises:
        TooLittleMemory: naming the largest piece.
    """
    sizes = piece_sizes(model, parts)
    if max(sizes) > memory_gb:
        largest = parts[sizes.index(max(sizes))]
        raise TooLittleMemory(
            f"memory_gb is {memory_gb:g}, and {largest[0]} with what is needed beside it takes "
            f"{max(sizes):.3g} GB in fp32: raise memory_gb"
        )


def give_back_freed_memory() -> None:
    """Let malloc return what was freed, which ``runtime.start`` has it keep; glibc only."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


class Stream:
    """Puts pieces of weights into a skeleton, the next one read while one is in use.

    Args:
        model: a ``skeleton``; its buffers go to the device.
        weights: of the model.
        memory_gb: for two pieces at a time, or else one.
        device: to compute on.
    """

    def __init__(
        self, model: PreTrainedModel, weights: Weights, memory_gb: float, device: str
    ) -> None:
        self.model, self.weights, self.memory_gb, self.device = model, weights, memory_gb, device
        # where each parameter sits; a tied one sits at several places
        self.places: dict[str, list[tuple[nn.Module, str]]] = {}
        names = {id(p): name for name, p in model.named_parameters()}
        for module in model.modules():
            for leaf, p in module.named_parameters(recurse=False):
                self.places.setdefault(names[id(p)], []).append((module, leaf))
            for leaf, buffer in module.named_buffers(recurse=False):
                module._buffers[leaf] = buffer.to(device)

    def through(self, parts: Sequence[Sequence[str]]) -> Iterator[None]:
        """Yield with each piece in its place, and no other."""
        sizes, end = piece_sizes(self.model, parts), len(parts) - 1
        with ThreadPoolExecutor(1) as reader:
            ahead: Future[dict[str, Tensor]] | None = None
            for i, names in enumerate(parts):
                tensors = ahead.result() if ahead else self._read(names)
                ahead = None  # or it would hold what is taken out below
                if i < end and sizes[i] + sizes[i + 1] <= self.memory_gb:
                    ahead = reader.submit(self._read, parts[i + 1])
                self._put(tensors)
                yield
                self._put({name: torch.empty_like(t, device="meta") for name, t in tensors.items()})
                if 0 < i < end - 2:  # blocks are alike: one after the next goes where this one was
                    self.weights.recycle(tensors.values())
                del tensors
                if not 0 < i < end - 2:
                    give_back_freed_memory()

    def _read(self, names: Sequence[str]) -> dict[str, Tensor]:
        return self.weights.read(names, self.device)

    def _put(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            parameter = nn.Parameter(tensor, requires_grad=False)
            for module, leaf in self.places[name]:
                module._parameters[leaf] = parameter


def streamed(body: Body, batches: Sequence[Batch], stream: Stream) -> Iterator[Outcome]:
    """The outcome of every batch, in one pass over the weights.

    Args:
        body: of the stream's model.
        batches: all that is to be measured.
        stream: of the weights.

    Raises:
        NotTheStream: the blocks or the final norm are not where ``body`` says.
    """
    model = stream.model
    conductor = getcurrent()

    def pause(*_: Any) -> None:
        conductor.switch()

    runs = [greenlet(lambda batch=batch: last_logits(model, batch)) for batch in batches]
    norms: list[list[Tensor]] = [[] for _ in batches]
    logits: list[Tensor] = []
    recorded: list[Tensor] = []
    handles: list[RemovableHandle] = []
    parts = pieces(model, body)
    try:
        with (
            torch.inference_mode(),
            recording(body.blocks, body.final_norm, body.names) as recorder,
        ):
            # after the recorder's, so that a block out of turn is an error before it is waited for
            handles += [block.register_forward_pre_hook(pause) for block in body.blocks]
            handles.append(body.blocks[-1].register_forward_hook(pause))
            for done, _ in enumerate(stream.through(parts), 1):
                logits = []
                for run, recorder.norms in zip(runs, norms, strict=True):
                    with _in_turn(recorder, done, len(body.blocks)):
                        logits.append(run.switch())
                    if run.dead and done < len(parts):
                        recorder.stacked()  # which is an error: not all blocks have run
            for recorder.norms in norms:
                recorded.append(recorder.stacked())
    finally:
        for handle in handles:
            handle.remove()
    for batch, batch_norms, last in zip(batches, recorded, logits, strict=True):
        yield Outcome(batch, batch_norms, last)


@contextmanager
def _in_turn(recorder: Recorder, done: int, n_blocks: int) -> Iterator[None]:
    """Explain the error of a pass that skips a block and meets weights that are not there yet.

    Args:
        recorder: of the pass.
        done: pieces of weights that were there, with the current one.
        n_blocks: how many blocks the model has.
    """
    try:
        yield
    except RuntimeError:
        if 1 < done <= n_blocks and len(recorder.norms) == done:
            recorder.stacked()
        raise
