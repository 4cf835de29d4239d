"""Files that only their owner can have written, and that are whole or not there."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

PARTIAL = ".partial"
"""How the name of a file ends while it is written, and after its writer was killed."""

TOUCHED_EVERY = 3600.0
"""Seconds: the time of a file says to this accuracy when it was used last."""


def read_own_file(path: Path) -> bytes | None:
    """The contents of a regular file that only this user can have written, else None.

    Marks the file as used. Raises `OSError`.
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
    """Writes a file beside `path` and moves it there in one step; raises `OSError`."""
    import tempfile  # only where something is written

    # Without fsync: what a power cut leaves fails its checksum.
    descriptor, partial = tempfile.mkstemp(suffix=PARTIAL, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        remove(partial)
        raise


def remove(path: str | os.PathLike[str]) -> bool:
    """Whether the file is not there afterwards."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def files_of(directory: Path, *suffixes: str) -> Iterator[tuple[Path, os.stat_result]]:
    """The files whose names end so, with their sizes and times; none where there is no directory."""
    with contextlib.suppress(OSError), os.scandir(directory) as found:
        for item in found:
            if item.name.endswith(suffixes):
                with contextlib.suppress(FileNotFoundError):
                    yield Path(item.path), item.stat(follow_symlinks=False)


def is_foreign(status: os.stat_result) -> bool:
    """Whether it belongs to another user, or others may write to it."""
    if not hasattr(os, "geteuid"):
        return False
    return status.st_uid != os.geteuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
