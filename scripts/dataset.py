"""Rule dataset: the corpus, or a nanoGPT-format directory, as bins with meta.pkl and meta.json."""

import hashlib
import sys
from pathlib import Path
from typing import Self

from pydantic import Field, TypeAdapter, model_validator
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io import corpus, dataset
from normscope.io.files import write_bytes, write_json
from normscope.schema import Strict


class Flags(Strict):
    """Make the dataset from sources pinned by sha256, or take a nanoGPT-format directory."""

    out: Path = Field(description="directory for the four files")
    sha256: corpus.SHA256 | None = Field(default=None, description="of the raw text")
    # as text: a list of models would be split at quotes and backslashes inside of paths
    sources: str = Field(default="[]", description="tried in turn, as JSON")
    directory: Path | None = Field(
        default=None, description="nanoGPT-format directory to use instead"
    )

    @model_validator(mode="after")
    def one_origin(self) -> Self:
        if (self.directory is None) == (self.sha256 is None):
            raise ValueError("give either --directory, or --sha256 with --sources")
        return self


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    flags = CliApp.run(Flags)
    if flags.directory is not None:
        data, origin = dataset.read(flags.directory), "a nanoGPT-format directory"
    else:
        assert flags.sha256 is not None
        sources = TypeAdapter(list[corpus.Source]).validate_json(flags.sources)
        raw, source = corpus.fetch(sources, flags.sha256, say)
        say(f"corpus: {source}")
        data, origin = dataset.encode(corpus.decode(raw)), f"text with sha256 {flags.sha256}"
    files = dataset.files(data)
    for name, content in files.items():
        write_bytes(flags.out / name, content)
    meta = {
        "origin": origin,
        "vocab_size": data.vocab_size,
        "characters": "".join(data.chars) if all(len(c) == 1 for c in data.chars) else None,
        "train_tokens": len(data.train),
        "val_tokens": len(data.val),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    write_json(flags.out / "meta.json", meta)


if __name__ == "__main__":
    report(main)
