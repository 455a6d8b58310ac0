"""Sources that hang, never end, lead elsewhere or lie: bounded, named, and nothing is kept."""

import io
import os
import re
from http.client import HTTPMessage
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request

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

from normscope.io import corpus
from normscope.io.corpus import fetch


def test_a_redirect_is_followed_on_the_web(server):
    source = url_source(server.url(f"to {server.url('text')}"))
    assert fetch([source], SHA256) == (TEXT, str(source))


@pytest.mark.parametrize("scheme", ["file", "ftp", "data", "gopher"])
def test_a_redirect_away_from_the_web_is_refused(server, text, scheme):
    target = text.as_uri().replace("file", scheme, 1)
    reason = failure(url_source(server.url(f"to {target}")))
    assert scheme in reason
    assert re.search("redirects to|Redirection to url .* is not allowed", reason)


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_redirect_from_https_to_what_can_be_altered_on_the_way_is_refused(scheme):
    request = Request("https://host/text")
    with pytest.raises(URLError, match=f"redirects to {scheme}://host/text: only https"):
        corpus._Redirects().redirect_request(
            request, io.BytesIO(), 302, "", HTTPMessage(), f"{scheme}://host/text"
        )


@pytest.mark.parametrize("name", ["endless", "text"])
def test_a_body_larger_than_a_corpus_may_be_is_left(server, monkeypatch, name):
    monkeypatch.setattr(corpus, "LIMIT", len(TEXT) - 1)
    assert "over 4,099 bytes, the most that a corpus may have" in failure(
        url_source(server.url(name))
    )


def test_a_pipe_or_device_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert "a pipe or a device, which may never end: give a file" in failure(path_source(path))
    assert "TimeoutError" in failure(url_source((tmp_path / "pipe").as_uri(), 0.3))


@pytest.mark.parametrize("name", ["silent", "stalls", "drips", "altered", "to file:///etc/passwd"])
def test_the_script_passes_over_what_hangs_or_lies_and_says_so(server, tmp_path, name):
    path, out = tmp_path / 'it\'s "ü" {x}, ]}\\ $(touch PWNED)', tmp_path / "out"
    path.write_bytes(TEXT)
    sources = [url_source(server.url(name), 0.5), path_source(path)]
    done = script(out, *sources, sha256=SHA256)
    first, second = done.stderr.splitlines()
    assert first.startswith(f"passed over: {sources[0]}: ")
    assert second == f"corpus: path {path}"
    assert (out / "meta.json").is_file()


def test_the_script_names_the_wait_of_the_only_source_and_leaves_nothing(server, tmp_path):
    source = url_source(server.url("silent"), 0.5)
    error = error_of(script(tmp_path / "out", source, sha256=SHA256))
    assert f"1. {source}: TimeoutError: no end after 0.5 s, its timeout_s" in error
    assert "Add a source that this machine reaches to dataset.sources in config.yaml" in error
    assert not (tmp_path / "out").exists()
