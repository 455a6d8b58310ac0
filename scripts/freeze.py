"""Freeze the tests of the ledger and the settings of an evidence run, before it starts."""

from hashlib import sha256
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import load
from normscope.errors import Explained, run_script
from normscope.io.files import write_json
from normscope.io.git import git
from normscope.ledger.frozen import DECIDES, Frozen
from normscope.pilot import read_project
from normscope.schema import Strict
from normscope.studies.statements import digests_of, load_checked


class Flags(Strict):
    """Write the digest of every test, and that of the configuration, with the present commit."""

    out: Path = Path("evidence/frozen.json")
    name: str = Field(default="config/paper.yaml", description="the run's configuration file")


def main() -> None:
    flags = parse(Flags)
    if changed := git("status", "--porcelain", "--", *DECIDES):
        raise Explained(f"what is frozen must be a commit: commit these files first\n{changed}")
    config = load(read_project(Path(), Path(flags.name)))
    claims = load_checked(sorted(Path("data/claims").glob("*.yaml")), config.studies)
    frozen = Frozen(
        commit=git("rev-parse", "HEAD"),
        configuration=flags.name,
        settings=sha256(config.recorded("figures").encode()).hexdigest(),
        statements=digests_of(claims),
    )
    write_json(flags.out, frozen.model_dump(mode="json"))
    print(f"{flags.out}: {len(frozen.statements)} tests are frozen. Commit it before the run.")


if __name__ == "__main__":
    run_script(main)
