"""Examine a norm with code of its own before anything is trained, and write what was found."""

import os
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import Explained, run_script
from normscope.io.files import write_text
from normscope.measure.examination import examine
from normscope.nn.recipe import Custom
from normscope.schema import Strict


class Flags(Strict):
    """Examine a norm: ``examine_norm.py --norm JSON --out FILE``."""

    norm: Custom
    out: Path = Field(description="file for the norm, with what was found")


def main() -> None:
    flags, forks = parse(Flags), []
    # a fork would go on with the examination, and make forks itself
    os.register_at_fork(before=lambda: forks.append(1), after_in_child=lambda: os._exit(0))
    try:
        examined = examine(flags.norm)
        if forks:
            raise Explained("it forks the process: compute in this one")
    except BaseException as e:  # of any kind, as the code is a user's
        kind = "" if isinstance(e, Explained) else f"{type(e).__name__}: "
        raise Explained(f"{flags.norm.name}: {kind}{' '.join(str(e).split())}") from None
    flags.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(flags.out, examined.model_dump_json())


if __name__ == "__main__":
    run_script(main)
