"""Rule dataset: the corpus, or a nanoGPT-format directory, as bins with meta.pkl and meta.json."""

import hashlib
import sys
from pathlib import Path

from pydantic import Field, TypeAdapter

from normscope.command import parse
from normscope.errors import report
from normscope.io import corpus, dataset
from normscope.io.files import write_bytes, write_json
from normscope.schema import Strict


class Flags(Strict):
    """Make the dataset from sources pinned by sha256, or take a nanoGPT-format directory."""

    recipe: corpus.Origin
    sources: Path = Field(description="where the text may be, tried in turn: JSON")
    out: Path = Field(description="directory for the four files")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    flags = parse(Flags)
    if flags.recipe.directory is not None:
        data, origin = dataset.read(Path(flags.recipe.directory)), "a nanoGPT-format directory"
    else:
        assert flags.recipe.sha256 is not None
        sources = TypeAdapter(list[corpus.Source]).validate_json(flags.sources.read_text())
        raw, source = corpus.fetch(sources, flags.recipe.sha256, say)
        say(f"corpus: {source}")
        data, origin = dataset.encode(corpus.decode(raw)), f"text with sha256 {flags.recipe.sha256}"
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
