"""Seals of tables: does a file still have the content that its script wrote?"""

import hashlib
from pathlib import Path

from normscope.io.files import seal


def is_altered(path: Path) -> bool:
    """Whether a file differs from what its seal says; one without a seal does not."""
    mark = seal(path)
    if not mark.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() != mark.read_text().strip()
