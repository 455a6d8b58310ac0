"""Locks on open files, which the kernel releases when the process ends."""

import fcntl
from typing import IO


def lock(file: int | IO, *, wait: bool = True) -> bool:
    """Lock an open file for this process.

    Args:
        file: the file or its descriptor.
        wait: until another process has released the lock.

    Returns:
        Whether the file is locked; without ``wait``, False if another process holds the lock.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
