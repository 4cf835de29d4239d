"""Files that only their owner can have written, and that are complete or absent."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from gossamer_backend.cache.directory import Directory, is_foreign

PARTIAL = ".partial"
"""The suffix of temporary files, which killed writers may leave."""

TOUCHED_EVERY = 3600.0
"""The accuracy, in seconds, of the recorded time of last use."""


def read_own_file(directory: Directory, name: str) -> bytes | None:
    """Return the contents of a regular file that only this user can have written, else None.

    Records the time of use. Raises `OSError`.
    """
    descriptor = directory.open(name, os.O_RDONLY)
    try:
        # The status is that of the open file: the name may lead to another one by now.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or is_foreign(status):
            return None
        # Not at every use: a write per read wears out disks and is slow on network file systems.
        # `abs`, since the clock may have been set back.
        if os.utime in os.supports_fd and abs(time.time() - status.st_mtime) > TOUCHED_EVERY:
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def replace_file(directory: Directory, name: str, data: bytes) -> None:
    """Write a temporary file in the directory and rename it; raise `OSError`."""
    # Without fsync: after a power failure, incomplete contents fail the checksum.
    partial = os.urandom(8).hex() + PARTIAL
    descriptor = directory.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        directory.rename(partial, name)
    except BaseException:
        directory.remove(partial)
        raise
