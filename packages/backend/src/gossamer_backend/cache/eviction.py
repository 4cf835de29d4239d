"""Keep the space that a directory takes on disk below a limit, without listing it at every write.

Writers append a byte to one file for each block that they are about to write, so its length is the amount
written since it was created. At an eighth of the limit, the writer that removes this file (only one can)
lists all entries and removes the least recently used ones.

The limit applies to the space on disk, not to the sum of lengths: a link of 148 bytes takes a block of 4 KiB.
Links are files of their own although one database would be smaller. A file is replaced atomically on every
file system, whether its writer is killed or forks, and a damaged one costs one entry. SQLite needs locks,
which network file systems may lack, connections that no fork inherits, and 10 ms to import.
"""

from __future__ import annotations

import os
import time

from gossamer_backend.cache.directory import BLOCK_BYTES, Directory, disk_usage
from gossamer_backend.cache.safe_files import PARTIAL

COUNTER = "written"
"""The file that counts the bytes written since the entries were listed."""

EVICTION_DIVISOR = 8
"""Entries are listed whenever an eighth of the limit was written, so an eighth of it stays unused. A larger
number wastes less space and lists the directory more often. The value was chosen, not measured."""

MARGIN_DIVISOR = 64
"""The limit divided by this is for what is not counted: the counter itself takes a 32768th of the limit, and
the list of files, with at most 100 bytes for each block, grows by a 328th at most before entries are
removed."""

ABANDONED_AFTER = 3600.0
"""Seconds after which a temporary file is taken to be left by a killed writer."""


def reserve_space(directory: Directory, length: int, *, suffix: str, limit: int) -> bool:
    """Count a file that is about to be written, and remove old entries when enough was written; return
    whether the file fits into the limit."""
    needed = directory.disk_space(length)
    # The bytes that may be written before the next eviction count: other writers do not wait for this
    # one. The two blocks are those of the counter and of the directory itself.
    size = limit - limit // EVICTION_DIVISOR - limit // MARGIN_DIVISOR - 2 * BLOCK_BYTES - needed
    if size < 0:
        return False
    try:
        written = _count_blocks(directory, needed // BLOCK_BYTES) * BLOCK_BYTES
    except OSError:
        written = limit  # If writes cannot be counted, the directory is listed.
    # Only one writer can remove the counter, so only one lists the directory.
    if written * EVICTION_DIVISOR >= limit and directory.remove(COUNTER):
        evict_entries(directory, suffix=suffix, size=size)
    return True


def evict_entries(directory: Directory, *, suffix: str, size: int) -> None:
    """Remove the least recently used entries until the directory takes at most `size` bytes on disk, and the
    temporary files of killed writers."""
    abandoned_before = time.time() - ABANDONED_AFTER
    # The list of files takes blocks, too, which a directory keeps after files are removed.
    total, entries = directory.space(), []
    for name, status in directory.files():
        if name.endswith(suffix):
            entries.append((status.st_mtime_ns, name, disk_usage(status)))
        elif _is_abandoned(name, status, abandoned_before) and directory.remove(name):
            continue
        total += disk_usage(status)
    for _, name, space in sorted(entries):
        if total <= size:
            break
        # A file that cannot be removed still takes its space.
        total -= space if directory.remove(name) else 0


def _is_abandoned(name: str, status: os.stat_result, before: float) -> bool:
    return name.endswith(PARTIAL) and status.st_mtime < before


def _count_blocks(directory: Directory, blocks: int) -> int:
    """Append `blocks` bytes to the counter, and return its length."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = directory.open(COUNTER, flags)
    try:
        os.write(descriptor, bytes(blocks))
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
