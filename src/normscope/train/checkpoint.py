"""Checkpoints that survive SIGKILL, a full disk and a damaged file.

A directory holds the two newest generations, ``step-00000500.ckpt``: the SHA-256 of the payload,
then the payload. If the newest file is damaged, the one before is used. A lock keeps two processes
from training the same models, which can happen if a workflow engine is killed and its job runs on.
"""

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from normscope.errors import Explained
from normscope.io.files import write_bytes
from normscope.locks import lock

GENERATIONS = 2
DIGEST = 64  # hex characters of a SHA-256


class RunInUse(Explained):
    """Another process is training this run."""


class BrokenCheckpoint(Explained):
    """A file is truncated, altered, or not a checkpoint."""


class Checkpoints:
    """The checkpoints of models that are trained together.

    Args:
        directory: for these checkpoints only; made if missing.
        fingerprint: of everything that determines the models; other checkpoints are not used.
        every: steps between checkpoints.
    """

    def __init__(self, directory: Path, fingerprint: str, every: int) -> None:
        self.directory, self.fingerprint, self.every = directory, fingerprint, every
        directory.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        """Newest first."""
        return sorted(self.directory.glob("step-*.ckpt"), reverse=True)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, then remove the oldest.

        Raises:
            OSError: the disk is full; the earlier checkpoints are unchanged.
        """
        buffer = io.BytesIO()
        torch.save({"fingerprint": self.fingerprint, "step": step, "state": state}, buffer)
        payload = buffer.getvalue()
        digest = hashlib.sha256(payload).hexdigest().encode()
        write_bytes(self.directory / f"step-{step:08d}.ckpt", digest + payload)
        self.keep(GENERATIONS)

    def load(self) -> tuple[int, dict[str, Any], list[str]]:
        """Return the newest intact checkpoint as (step, state, notes for the log).

        Without one, the step is 0 and the state empty.

        Raises:
            BrokenCheckpoint: all files are damaged.
        """
        notes: list[str] = []
        files = self.files()
        for path in files:
            try:
                content = _read(path)
            except BrokenCheckpoint as e:
                notes.append(f"{e}; falling back to the one before")
                continue
            if content["fingerprint"] != self.fingerprint:
                notes.append(f"{path} belongs to other settings, data or code; starting at step 0")
                self.clear()  # their steps may be higher than those of the new checkpoints
                return 0, {}, notes
            return content["step"], content["state"], notes
        if files:
            raise BrokenCheckpoint(
                f"no sound checkpoint among {', '.join(map(str, files))}: "
                f"remove {self.directory} to train this run from step 0"
            )
        return 0, {}, notes

    def keep(self, generations: int) -> None:
        """Remove all but the newest."""
        for old in self.files()[generations:]:
            old.unlink()

    def clear(self) -> None:
        """Remove all checkpoints, and what a killed process was writing."""
        for path in [*self.files(), *self.directory.glob(".step-*.tmp")]:
            path.unlink()


@contextmanager
def reserve(directory: Path) -> Iterator[None]:
    """Reserve the checkpoints of a job for this process.

    Raises:
        RunInUse: another process is training this job's models.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "a+") as f:
        if not lock(f, wait=False):
            f.seek(0)
            raise RunInUse(
                f"process {f.read().strip()} is training this run ({directory}): "
                "wait until it ends, or end it, then start again"
            )
        f.truncate(0)
        f.write(str(os.getpid()))
        f.flush()
        yield


def _read(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    digest, payload = raw[:DIGEST], raw[DIGEST:]
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise BrokenCheckpoint(f"{path} is truncated or altered ({len(raw):,} bytes)")
    try:
        payload = io.BytesIO(payload)
        # into main memory: this process may use another device than the one that saved it
        content = torch.load(payload, "cpu", weights_only=True)  # noqa: TID251 - tensors
        return {name: content[name] for name in ("fingerprint", "step", "state")}
    except (UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, TypeError) as e:
        # torch's message recommends unpickling the file without restrictions
        raise BrokenCheckpoint(f"{path} is not a checkpoint of normscope, and is not loaded") from e
