"""A model's weights in safetensors files, tensor by tensor."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from normscope.errors import Explained
from normscope.hub.snapshot import INDEX, SINGLE

TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
CHUNK = 4 << 20  # numbers that are upcast at a time


class BrokenWeights(Explained):
    """A file of weights is missing, truncated, or of another model."""


def inside(directory: Path, name: str) -> Path:
    """The file of a model directory that an index names.

    Raises:
        BrokenWeights: it is the name of something elsewhere, which an index has no reason to read.
    """
    if not isinstance(name, str) or Path(name).name != name:
        raise BrokenWeights(f"{directory}: its index names {name!r}, which is no file in there")
    return directory / name


def shards(directory: Path) -> list[Path]:
    """The safetensors files of a model directory, each complete.

    Raises:
        BrokenWeights: one is missing or truncated.
    """
    index = directory / INDEX
    if (directory / SINGLE).is_file():
        names = [SINGLE]
    elif index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise BrokenWeights(f"{index} is damaged ({e!r}): fetch it again") from e
    else:
        raise BrokenWeights(f"{directory} has neither {SINGLE} nor {INDEX}")
    paths = [inside(directory, name) for name in names]
    for path in paths:
        if not path.is_file():
            raise BrokenWeights(f"{path} is missing: {INDEX} names it; fetch it again")
        try:
            with safe_open(path, "pt"):  # reads the header, which has the length of all
                pass
        except SafetensorError as e:
            raise BrokenWeights(f"{path} is truncated or damaged ({e}): fetch it again") from e
    return paths


def stored_types(files: Iterable[Path]) -> str:
    """Types that weights are stored in, as safetensors calls them."""
    return ", ".join(sorted({s.kind for path in files for s in contents(path).values()}))


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies in a file, and as what."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    offset: int
    bytes: int


def contents(path: Path) -> dict[str, Stored]:
    """The tensors of a complete safetensors file, by its header.

    The library maps files into memory; read through page faults, weights come at a quarter of the
    rate of plain reads. Format: 8 bytes of length, a JSON header, the tensors.
    """
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {
        name: Stored(path, h["dtype"], tuple(h["shape"]), 8 + length + begin, end - begin)
        for name, h in header.items()
        for begin, end in [h["data_offsets"]]
    }


class Weights:
    """Tensors by the names of a model's parameters, read when asked for.

    Checkpoints name some weights as older classes did (``embed_out`` of GPT-NeoX, no
    ``transformer.`` in gpt2's): transformers' own renamings are applied.

    Args:
        files: safetensors files, each complete.
        model: whose parameters they are.

    Raises:
        BrokenWeights: a parameter is in none of the files, or has another shape there.
    """

    def __init__(self, files: Sequence[Path], model: PreTrainedModel) -> None:
        transforms = get_model_conversion_mapping(model)
        renamings = [t for t in transforms if isinstance(t, WeightRenaming)]
        converters = [t for t in transforms if isinstance(t, WeightConverter)]
        prefix = model.base_model_prefix
        parameters = dict(model.named_parameters(remove_duplicate=False))
        canonical = {id(p): name for name, p in model.named_parameters()}
        self.stored: dict[str, Stored] = {}
        where = " and ".join(sorted({str(path.parent) for path in files}))
        for key, stored in {k: s for path in files for k, s in contents(path).items()}.items():
            name, converted = rename_source_key(key, renamings, converters, prefix, parameters)
            if name in parameters and converted is None:
                _check(name, stored, parameters[name].shape)
                self.stored[canonical[id(parameters[name])]] = stored
        if missing := sorted(set(canonical.values()) - set(self.stored)):
            raise BrokenWeights(
                f"{where} lacks {len(missing)} weight(s) of {type(model).__name__}: "
                f"{', '.join(missing[:3])}; where transformers makes them of others while loading, "
                "raise memory_gb so that the model is loaded as a whole"
            )
        self.spare: dict[int, list[Tensor]] = {}
        self.raw = torch.empty(8 * CHUNK, dtype=torch.uint8)  # for what is to be upcast

    def read(self, names: Iterable[str], device: str) -> dict[str, Tensor]:
        """The named parameters in fp32 on a device; one tensor at a time is read and upcast.

        Raises:
            BrokenWeights: a file went away or was cut meanwhile.
        """
        return {name: self._read(self.stored[name], device) for name in names}

    def recycle(self, tensors: Iterable[Tensor]) -> None:
        """Take back what ``read`` gave: its memory is used again, so that no page is new."""
        for tensor in tensors:
            if tensor.device.type == "cpu":
                raw = tensor.view(-1).view(torch.uint8)
                self.spare.setdefault(len(raw), []).append(raw)

    def _read(self, stored: Stored, device: str) -> Tensor:
        kind = TYPES[stored.kind]
        wide = self._buffer(4 * stored.bytes // kind.itemsize).view(torch.float32)
        try:
            with open(stored.path, "rb", buffering=0) as file:
                file.seek(stored.offset)
                if kind == torch.float32:
                    _fill(file, wide.view(torch.uint8))
                else:
                    for part in wide.split(CHUNK):
                        raw = self.raw[: len(part) * kind.itemsize]
                        _fill(file, raw)
                        part.copy_(raw.view(kind))
        except OSError as e:
            raise BrokenWeights(f"{stored.path} could not be read: {e}") from e
        tensor = wide.view(stored.shape)
        if device == "cpu":
            return tensor
        moved = tensor.to(device)
        self.recycle([tensor])
        return moved

    def _buffer(self, size: int) -> Tensor:
        spare = self.spare.get(size)
        return spare.pop() if spare else torch.empty(size, dtype=torch.uint8)


def _fill(file: RawIOBase, buffer: Tensor) -> None:
    """Read as many bytes as the buffer holds; the system gives at most 2 GB at a time."""
    view, done = buffer.numpy().data, 0
    while done < len(view):
        got = file.readinto(view[done:])
        if not got:
            raise OSError("it was cut while it was read: fetch it again")
        done += got


def _check(name: str, stored: Stored, shape: torch.Size) -> None:
    if tuple(shape) != stored.shape:
        raise BrokenWeights(
            f"{stored.path}: {name} has shape {list(stored.shape)} there, and {list(shape)} by the "
            "model's configuration"
        )
    if stored.kind not in TYPES:
        raise BrokenWeights(
            f"{stored.path}: {name} is stored as {stored.kind}, not upcast block by block: "
            "raise memory_gb so that the model is loaded as a whole"
        )
