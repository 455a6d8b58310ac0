"""Measure the residual stream of one pretrained model over the prompts."""

import re
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import huggingface_hub
import pandas as pd
import transformers
from pydantic import Field

from normscope.command import parse
from normscope.errors import Explained, run_script
from normscope.hub.batching import batches, tokenize
from normscope.hub.loading import load_model
from normscope.hub.measurement import Rows, rows, run_batches
from normscope.hub.prompts import Prompt, read_prompts
from normscope.hub.recipe import DirectorySource, HubSource, Measurement
from normscope.hub.source import check_commit, hide_token, locate
from normscope.io.csvfile import write_csv
from normscope.io.files import write_json, write_sums
from normscope.schema import PositiveInt, Strict
from normscope.studies.pretrained.measures import PROBED
from normscope.train.outputs import check_store, write_timing
from normscope.train.runtime import Runtime, start


class Flags(Strict):
    """Measure one pretrained model."""

    recipe: Measurement
    prompts: Path
    memory_mb: PositiveInt = Field(description="limit for the weights in memory")
    fetch_s: float = Field(default=0, description="seconds for a download; 0: as the source says")
    weights: Path = Field(description="directory for converted weights")
    revisions: Path = Field(description="directory with the recorded commits of hub models")
    out: Path = Field(description="directory for the tables, model.json and sums")
    store: Path | None = Field(default=None, description="where Snakemake keeps the outputs")
    timing: Path | None = Field(default=None, description="TSV for the speed of this process")
    threads: PositiveInt = 1


def measure_model(
    flags: Flags, prompts: list[Prompt], arithmetic: Runtime
) -> tuple[Rows, dict[str, Any]]:
    """The rows of the tables, and the content of model.json."""
    device = arithmetic.device.type
    source = flags.recipe.source
    if flags.fetch_s and not isinstance(source, DirectorySource):
        source = source.model_copy(update={"timeout_s": flags.fetch_s})
    directory, commit = locate(source, flags.weights), None
    if isinstance(source, HubSource):
        commit = directory.name
        check_commit(flags.revisions, source, commit)
    flags.weights.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=flags.weights) as offload:
        loaded = load_model(directory, flags.recipe, flags.memory_mb / 1e3, device, Path(offload))
        chosen = [prompt for prompt in prompts if prompt.set == flags.recipe.prompts]
        sequences, adds_bos = tokenize(loaded.tokenizer, chosen)
        outcomes = run_batches(loaded.model, loaded.body, batches(sequences, device))
        made = rows(outcomes, loaded.body, loaded.tokenizer)
    facts = {"source": str(source), "commit": commit}
    facts |= loaded.facts | arithmetic.record | {"tokenizer_adds_bos": adds_bos}
    gguf = re.search(r"(?:[.-]([qQ]\w+))?\.gguf", getattr(source, "member", ""))  # name.Q4_1.gguf
    if gguf:
        facts |= {"stored": f"GGUF {(gguf[1] or '').upper()}".strip()}
    facts |= {"transformers": transformers.__version__}
    return made, facts


def main() -> None:
    flags, began = parse(Flags), time.monotonic()
    check_store(flags.store)
    arithmetic = start("fp32", flags.threads, flags.recipe.device, keep_memory=False)
    prompts = read_prompts(flags.prompts)
    huggingface_hub.logging.set_verbosity_error()  # warnings would repeat text from the server
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        made, facts = measure_model(flags, prompts, arithmetic)
        facts |= {"missing": None}
    except Exception as e:
        # a model that cannot be measured does not stop the others: its result is the reason
        first, *_ = str(e).splitlines() or [""]
        reason = hide_token(str(e) if isinstance(e, Explained) else f"{type(e).__name__}: {first}")
        if not isinstance(e, Explained):
            print(hide_token(traceback.format_exc()), file=sys.stderr)
        print(f"error: {reason}", file=sys.stderr)
        made, facts = Rows([], [], []), {"missing": reason}
    for name, table in made._asdict().items():
        write_csv(flags.out / f"{name}.csv", pd.DataFrame(table, columns=PROBED[name]))
    write_json(flags.out / "model.json", facts)
    write_sums(flags.out, [*(f"{name}.csv" for name in PROBED), "model.json"])
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began)


if __name__ == "__main__":
    run_script(main)
