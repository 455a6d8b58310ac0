"""The registry of test suites, tests/suites.yaml, and the command by which .ci/run runs each one.

``python tests/suites.py NAME`` prints that command.
"""

import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import yaml

from normscope.schema import Strict

ROOT = Path(__file__).parents[1]


class Suite(Strict):
    """A set of tests that one command runs; tests/suites.yaml explains the keys."""

    protects: str
    run: str
    tests: tuple[str, ...] = ()
    takes: str
    ci: str
    because: str = ""
    smaller: str = ""


def load() -> dict[str, Suite]:
    """The suites by name."""
    content = yaml.safe_load((ROOT / "tests/suites.yaml").read_text())
    return {name: Suite.model_validate(suite) for name, suite in content.items()}


def part_of(tests: Sequence[str], part: str) -> set[str]:
    """The names in part ``K/N``, drawn by a hash; the sizes of two parts differ by one at most."""
    k, n = map(int, part.split("/"))
    return set(sorted(tests, key=lambda name: zlib.crc32(name.encode()))[k - 1 :: n])


def sample(suite: Suite, tree: str) -> str:
    """What CI runs of a suite.

    Args:
        suite: whole, collected, or one of N parts.
        tree: hash of the content that is tested; it chooses the part.
    """
    if suite.ci == "whole":
        return suite.run
    if suite.ci == "collected":
        return " ".join(["pytest", "--collect-only", *suite.tests])
    parts = int(suite.ci.removeprefix("1/"))
    part = f"PART={int(tree[:8], 16) % parts + 1}/{parts}"
    return " ".join(filter(None, [suite.run, part, suite.smaller]))


if __name__ == "__main__":
    command = ["git", "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    print(sample(load()[sys.argv[1]], tree))
