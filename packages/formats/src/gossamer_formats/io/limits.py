"""What this machine can hold."""

from __future__ import annotations

import os


def memory_size() -> int:
    """Bytes of physical memory: what is larger is refused before anybody allocates it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
