"""What Git knows of the project."""

import subprocess

from normscope.errors import Explained


def git(*words: str) -> str:
    """The output of a command of Git in the current directory."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        said = getattr(e, "stderr", None) or str(e)
        raise Explained(f"git {' '.join(words)}: {said.strip()}; run it in a clone") from None
    return done.stdout.strip()
