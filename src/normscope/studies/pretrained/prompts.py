"""What is wrong with a file of prompts, told before any job starts. No pandas."""

from pathlib import Path

from normscope.hub.prompts import SET, PromptsError, read_prompts
from normscope.io.names import survives_tables


def check_prompts(path: Path) -> None:
    """Whether models can be measured on the prompts of a file, and its names stand in tables.

    Raises:
        PromptsError: they cannot; with the file, the name and the reason.
    """
    prompts = read_prompts(path)
    if SET not in {prompt.set for prompt in prompts}:
        raise PromptsError(f"{path} has no set {SET}: statistics over prompts are of it")
    for prompt in prompts:
        for name in (prompt.set, prompt.category, prompt.name):
            try:
                survives_tables(name)
            except ValueError as e:
                raise PromptsError(f"{path}: sets.{prompt.set}.{prompt.category}: {e}") from None
