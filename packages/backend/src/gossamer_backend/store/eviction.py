"""Keep a directory below a size without listing it at every write.

Writers append a byte to one file for each block that they have written, so its length is the amount written
since it was created. At an eighth of the limit, the writer that removes this file (only one can) lists all
entries and removes the least recently used ones.
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
"""Seconds after which a temporary file is taken to be left by a killed writer."""


def account(directory: Path, size: int, *, suffix: str, limit: int) -> None:
    """Count a file of `size` bytes that was written; remove old entries when enough was written."""
    counter = directory / COUNTER
    try:
        written = _count(counter, -(-size // BLOCK)) * BLOCK
    except OSError:
        written = limit  # If writes cannot be counted, the directory is listed.
    if written * SHARE >= limit and remove(counter):
        sweep(directory, suffix=suffix, size=limit - limit // SHARE)


def sweep(directory: Path, *, suffix: str, size: int) -> None:
    """Remove the least recently used entries until all files have at most `size` bytes, and the temporary
    files of killed writers."""
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
    """Append `blocks` bytes to the counter, and return its length."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(counter, flags, 0o600), "ab", buffering=0) as file:
        file.write(bytes(blocks))
        return os.fstat(file.fileno()).st_size
