"""Rule dataset: the corpus, or a nanoGPT-format directory, as bins with meta.pkl and meta.json."""

import hashlib
import sys
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io import corpus, dataset
from normscope.io.files import seal, write_bytes, write_json
from normscope.schema import Strict


class Flags(Strict):
    """Make the dataset from a source with a known sha256, or from a nanoGPT-format directory."""

    recipe: corpus.Origin
    given: Path = Field(description="sources of the text, and the longest context: JSON")
    out: Path = Field(description="directory for the four files")


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    flags = parse(Flags)
    given = corpus.Given.model_validate_json(flags.given.read_text())
    if flags.recipe.directory is not None:
        data = dataset.read_foreign(Path(flags.recipe.directory))
    else:
        assert flags.recipe.sha256 is not None
        raw, source = corpus.fetch(given, flags.recipe.sha256, log)
        log(f"corpus: {source}")
        data = dataset.encode(corpus.decode(raw))
    corpus.check_length(len(data.train), len(data.val), given.context)
    files = dataset.files(data)
    for name, content in files.items():
        write_bytes(flags.out / name, content)
    meta = {
        "origin": str(flags.recipe),
        "vocab_size": data.vocab_size,
        "characters": "".join(data.chars) if all(len(c) == 1 for c in data.chars) else None,
        "train_tokens": len(data.train),
        "val_tokens": len(data.val),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    write_json(flags.out / "meta.json", meta)
    seal(*(flags.out / name for name in (*files, "meta.json")))


if __name__ == "__main__":
    run_script(main)
