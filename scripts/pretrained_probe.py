"""Measure the residual stream of one pretrained model over the prompts, in one pass."""

import sys
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
from normscope.hub.loading import load
from normscope.hub.measurement import rows
from normscope.hub.prompts import Prompt, read_prompts
from normscope.hub.recipe import HubSource, Measured
from normscope.hub.source import check_commit, locate, without_token
from normscope.io.corpus import WheelSource
from normscope.io.csvfile import write_csv
from normscope.io.files import write_json, write_sums
from normscope.schema import PositiveInt, Strict
from normscope.studies.pretrained.measures import GAIN_COLUMNS, NORM_COLUMNS
from normscope.train.outputs import check_store, write_timing
from normscope.train.runtime import Runtime, start


class Flags(Strict):
    """Measure one pretrained model."""

    recipe: Measured
    prompts: Path
    memory_mb: PositiveInt = Field(description="for weights")
    fetch_s: float = Field(default=0, description="limit for a download in seconds; 0: its own")
    weights: Path = Field(description="directory for converted weights")
    revisions: Path = Field(description="directory that says which commits were measured")
    out: Path = Field(description="directory for gains.csv, norms.csv, model.json and sums")
    store: Path | None = Field(default=None, description="where outputs are to be kept")
    timing: Path | None = Field(default=None, description="TSV for the speed of this process")
    threads: PositiveInt = 1


def measured(
    flags: Flags, prompts: list[Prompt], arithmetic: Runtime
) -> tuple[list[dict], list[dict], dict[str, Any]]:
    """The two tables, and what the model is."""
    device = arithmetic.device.type
    source = flags.recipe.source
    if isinstance(source, HubSource | WheelSource) and flags.fetch_s:
        source = source.model_copy(update={"timeout_s": flags.fetch_s})
    located = locate(source, flags.weights)
    if isinstance(source, HubSource) and located.commit is not None:
        check_commit(flags.revisions, source, located.commit)
    model = load(located.directory, flags.recipe, flags.memory_mb / 1e3, device)
    sequences, adds_bos = tokenize(model.tokenizer, prompts)
    gains, norms = rows(model.outcomes(batches(sequences, device)), model.body, model.tokenizer)
    facts = {"source": str(source), "commit": located.commit}
    facts |= model.facts | arithmetic.recorded | {"tokenizer_adds_bos": adds_bos}
    if isinstance(source, WheelSource):
        kind = Path(Path(source.member).stem).suffix.removeprefix(".")  # name.Q4_1.gguf
        facts |= {"stored": f"GGUF {kind}".strip()}
    facts |= {"transformers": transformers.__version__}
    return gains, norms, facts


def main() -> None:
    flags, began = parse(Flags), time.monotonic()
    check_store(flags.store)
    arithmetic = start("fp32", flags.threads, flags.recipe.device)
    prompts = read_prompts(flags.prompts)
    huggingface_hub.logging.set_verbosity_error()  # its warnings repeat what a server says
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        gains, norms, facts = measured(flags, prompts, arithmetic)
        facts |= {"missing": None}
    except Exception as e:
        # one model that cannot be had does not stop the others: the reason is the result, for now
        first, *_ = str(e).splitlines() or [""]
        reason = without_token(
            str(e) if isinstance(e, Explained) else f"{type(e).__name__}: {first}"
        )
        if not isinstance(e, Explained):
            print(without_token(traceback.format_exc()), file=sys.stderr)
        print(f"error: {reason}", file=sys.stderr)
        gains, norms, facts = [], [], {"missing": reason}
    write_csv(flags.out / "gains.csv", pd.DataFrame(gains, columns=GAIN_COLUMNS))
    write_csv(flags.out / "norms.csv", pd.DataFrame(norms, columns=NORM_COLUMNS))
    write_json(flags.out / "model.json", facts)
    write_sums(flags.out, ["gains.csv", "norms.csv", "model.json"])
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began)


if __name__ == "__main__":
    run_script(main)
