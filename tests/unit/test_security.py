"""No code in a file is run: the source is searched for such calls, and hostile files are read."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config

from normscope.errors import Explained
from normscope.hub.loading import SINGLE, load_weights, stored_types
from normscope.io.dataset import DatasetError, encode, files, read
from normscope.io.stored import Damaged
from normscope.train.checkpoint import BrokenCheckpoint, Checkpoints
from normscope.train.weights import load


class Calls:
    """Unpickled, it calls a function."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple:
        return self.call


def by_opcode(module: str, name: str, argument: str) -> bytes:
    """A pickle with opcode INST, which the pickler of Python does not write."""
    return f"(S{argument!r}\ni{module}\n{name}\n.".encode()


GADGETS: dict[str, Callable[[str], bytes]] = {
    "a shell": lambda path: pickle.dumps(Calls(os.system, f"touch {path}")),
    "by opcode": lambda path: by_opcode("os", "mkdir", path),
    "before it is cut": lambda path: pickle.dumps((Calls(os.mkdir, path), "end"), 0)[:-5],
}
REFUSED = (DatasetError, BrokenCheckpoint, Explained)


def as_meta(raw: bytes, place: Path) -> None:
    for name, content in files(encode("to be or not to be: that is")).items():
        (place / name).write_bytes(raw if name == "meta.pkl" else content)
    read(place)


def as_checkpoint(raw: bytes, place: Path) -> None:
    digest = hashlib.sha256(raw).hexdigest().encode()
    (place / "step-00000001.ckpt").write_bytes(digest + raw)
    Checkpoints(place, "f", 1).load()


def as_weights(raw: bytes, place: Path) -> None:
    (place / "pytorch_model.bin").write_bytes(raw)
    load_weights(place, GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=9), {})


def zip_archive(raw: bytes) -> bytes:
    """As torch saves, with another pickle in it."""
    sound, made = io.BytesIO(), io.BytesIO()
    torch.save({"w": torch.zeros(2)}, sound)
    with zipfile.ZipFile(sound) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            target.writestr(name, raw if name.endswith("data.pkl") else source.read(name))
    return made.getvalue()


@pytest.mark.parametrize("gadget", GADGETS)
@pytest.mark.parametrize(
    ("load", "pack"),
    [
        (as_meta, bytes),
        *((load, pack) for load in (as_checkpoint, as_weights) for pack in (bytes, zip_archive)),
    ],
    ids=["meta.pkl", "checkpoint", "checkpoint, zipped", "weights", "weights, zipped"],
)
def test_a_hostile_pickle_is_refused_and_not_run(
    load: Callable, pack: Callable, gadget: str, tmp_path: Path
):
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(REFUSED, match=re.escape(str(place))):
        load(pack(GADGETS[gadget](str(tmp_path / "ran"))), place)
    assert not (tmp_path / "ran").exists()
    with contextlib.suppress(Exception):  # the gadget works where nothing stops it
        pickle.loads(GADGETS[gadget](str(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


def safetensors(header: bytes, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header


HEADERS = {
    "longer than all memory": safetensors(b"{}", 2**62),
    "no JSON": safetensors(b"{" * 100),
    "another size than its shape": safetensors(
        b'{"w":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}0000'
    ),
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_hostile_header_of_weights_is_refused_by_name(header: str, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HEADERS[header])
    with pytest.raises(Explained, match=re.escape(str(path))):
        stored_types(tmp_path)
    with pytest.raises(Damaged, match=re.escape(str(path))):
        load(path, lambda _: torch.nn.Linear(1, 1))


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd"])
@pytest.mark.parametrize("file", SINGLE)
def test_an_index_names_no_file_elsewhere(file: str, name: object, tmp_path: Path):
    place = tmp_path / "model"
    place.mkdir()
    save_file({"w": torch.zeros(1)}, tmp_path / "model.safetensors")
    (place / f"{file}.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(Explained, match=f"{place}.*not a file in its directory"):
        stored_types(place)
