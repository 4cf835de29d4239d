"""The state of a kernel while it is emitted."""

from __future__ import annotations

import msgspec


class KernelState(msgspec.Struct):
    """The block of a kernel, and its shared memory so far."""

    block: tuple[int, int, int] = (1, 1, 1)
    """The threads of a block along x, y and z."""
    shared_bytes: int = 0
    """The size of the buffers in shared memory that have an address."""
    total_shared_bytes: int = 0
    """The size of all its buffers in shared memory."""
    has_warpgroups: bool = False
    """True if products of warpgroups read shared memory."""
