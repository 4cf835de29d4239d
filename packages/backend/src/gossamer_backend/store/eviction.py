"""Keeps a directory below a size without looking at all of it at every write.

Writers append to one file a byte for each block they have written, so that its length says how much
was written since it was made. When that is an eighth of the limit, the writer that removes the file
(only one can) looks at all entries and removes those that were used longest ago.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from gossamer_backend.store.files import PARTIAL, files_of, remove

COUNTER = "written"
BLOCK = 4096
SHARE = 8
ABANDONED_AFTER = 3600.0
"""Seconds after which nobody is still writing a file."""


def account(directory: Path, size: int, *, suffix: str, limit: int) -> None:
    """Counts a file of `size` bytes that was written; now and then removes old ones."""
    counter = directory / COUNTER
    try:
        written = _count(counter, -(-size // BLOCK)) * BLOCK
    except OSError:
        written = limit  # What cannot be counted is looked at.
    if written * SHARE >= limit and remove(counter):
        sweep(directory, suffix=suffix, size=limit - limit // SHARE)


def sweep(directory: Path, *, suffix: str, size: int) -> None:
    """Removes the entries used longest ago until all files have at most `size` bytes, and what
    killed writers left."""
    abandoned_before = time.time() - ABANDONED_AFTER
    total, entries = 0, []
    for path, status in files_of(directory, suffix, PARTIAL):
        if path.name.endswith(suffix):
            entries.append((status.st_mtime_ns, path, status.st_size))
        elif status.st_mtime < abandoned_before and remove(path):
            continue
        total += status.st_size
    for _, path, length in sorted(entries):
        if total <= size:
            break
        total -= length if remove(path) else 0


def _count(counter: Path, blocks: int) -> int:
    """The length of the counter, after `blocks` bytes were appended to it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(counter, flags, 0o600), "ab", buffering=0) as file:
        file.write(bytes(blocks))
        return os.fstat(file.fileno()).st_size
