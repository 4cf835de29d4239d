"""The memory of this machine."""

from __future__ import annotations

import os


def memory_size() -> int:
    """The bytes of physical memory. Larger matrices are refused before anything is allocated."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
