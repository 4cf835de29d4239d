"""Files that only their owner can have written, and that are complete or absent."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

PARTIAL = ".partial"
"""The suffix of temporary files, which killed writers may leave."""

TOUCHED_EVERY = 3600.0
"""The accuracy, in seconds, of the recorded time of last use."""


def read_own_file(path: Path) -> bytes | None:
    """Return the contents of a regular file that only this user can have written, else None.

    Records the time of use. Raises `OSError`.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or is_foreign(status):
            return None
        data = file.read()
    if abs(time.time() - status.st_mtime) > TOUCHED_EVERY:
        with contextlib.suppress(OSError):
            os.utime(path)
    return data


def replace(path: Path, data: bytes) -> None:
    """Write a temporary file beside `path` and rename it; raise `OSError`."""
    import tempfile  # only where something is written

    # Without fsync: after a power failure, incomplete contents fail the checksum.
    descriptor, partial = tempfile.mkstemp(suffix=PARTIAL, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        remove(partial)
        raise


def remove(path: str | os.PathLike[str]) -> bool:
    """Remove a file; return whether it is absent afterwards."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def files_of(directory: Path, *suffixes: str) -> Iterator[tuple[Path, os.stat_result]]:
    """Return the files with this suffix, with sizes and times of use; empty if the directory is missing."""
    with contextlib.suppress(OSError), os.scandir(directory) as found:
        for item in found:
            if item.name.endswith(suffixes):
                with contextlib.suppress(FileNotFoundError):
                    yield Path(item.path), item.stat(follow_symlinks=False)


def is_foreign(status: os.stat_result) -> bool:
    """Return whether a file belongs to another user, or others may write to it."""
    if not hasattr(os, "geteuid"):
        return False
    return status.st_uid != os.geteuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
