"""Sizes and limits of packing: a dense operand is copied to aligned addresses before a matrix selects its
rows, all rows at once or a tile of features for all threads."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

MANY_USES = 16
"""Minimum mean number of stored elements of a column, each of which uses a row of the dense operand, for
most of its rows to be in a cache when they are read (aligned loads, measured at 19 to 40 MB: 1.3 to 1.8 times
faster with 29 to 60 elements, 0.7 to 0.9 with 2 to 7), and for threads to pack tiles of long rows
(`thread_copies` has the times). Products of blocks count loads: `SHARED_TILE_LOADS`."""

GATHERED_DIVISOR = 2
"""Packing gathered rows pays for an operand of at most half of the private cache, from which the copy is read
(measured: as fast as without if it fills the cache)."""

GATHERED_USES = 32
"""Minimum mean number of times that a gathered row is used for packing to pay on several threads, which read
the copy from the cache of the one that wrote it (measured on Emerald Rapids at 20 to 29 uses: 0.6 to 0.8 of
the time on one thread, 1.1 to 1.9 on two; at 59 uses 0.7 to 0.75 on either)."""

SHARED_TILE_LOADS = 32
"""Minimum mean number of loads of a row of a tile of features for packing to pay (measured on Emerald Rapids
with 128 and 512 features, on one thread and on two: at 51 loads 1.25 and 1.7 times as fast, 1.05 and 1.35; at
20 loads 0.85 to 1.2, 0.7 to 1.0; at 8 loads 0.6 to 1.1, 0.5 to 0.75)."""

Obstacle: TypeAlias = Literal[
    "partial tiles", "idle cores", "few uses", "small operand", "large copy"
]
"""A reason not to pack."""


class Packing(msgspec.Struct, frozen=True):
    """The sizes on which packing depends: the minimum mean number of uses of a row, the bytes of the operand
    and the minimum of these, the bytes of the copy and the room for it. `obstacle` is the first reason not to
    pack, None if packing pays."""

    uses: int
    operand: int
    least: int
    copy: int
    room: int
    obstacle: Obstacle | None

    @property
    def is_profitable(self) -> bool:
        return self.obstacle is None


def is_used_often(stats: Stats, *, uses: int = MANY_USES) -> bool:
    """Return whether the rows of an operand, one for each column of the matrix, are used so often on
    average.

    >>> is_used_often(Stats(rows=100, columns=10, nnz=160, longest_row=2, empty_rows=0))
    True
    """
    return stats.nnz >= uses * stats.columns


def packing_of(
    stats: Stats, *, uses: int, copy: int, room: int, operand: int = 0, least: int = 0
) -> Packing:
    """Return whether packing pays for a matrix, with these sizes and limits in bytes.

    >>> matrix = Stats(rows=100, columns=10, nnz=160, longest_row=2, empty_rows=0)
    >>> limits = (16, 640), (16, 639), (17, 640)
    >>> [packing_of(matrix, uses=uses, copy=640, room=room).obstacle for uses, room in limits]
    [None, 'large copy', 'few uses']
    """
    obstacle: Obstacle | None = None
    if not is_used_often(stats, uses=uses):
        obstacle = "few uses"
    elif operand < least:
        obstacle = "small operand"
    elif copy > room:
        obstacle = "large copy"
    return Packing(uses, operand, least, copy, room, obstacle)


def row_packing(row_bytes: int, machine: Machine, stats: Stats) -> Packing:
    """Return whether all rows of an operand are packed, before a loop selects from them.

    >>> matrix = Stats(rows=1000, columns=1000, nnz=32_000, longest_row=40, empty_rows=0)
    >>> [row_packing(row_bytes, Machine(), matrix).is_profitable for row_bytes in (64, 4096)]
    [True, False]
    """
    size = stats.columns * row_bytes
    room = machine.private_cache // GATHERED_DIVISOR
    return packing_of(stats, uses=GATHERED_USES, copy=size, room=room, operand=size)


def shared_tile_packing(
    tile_bytes: int, machine: Machine, stats: Stats, *, block_rows: int
) -> Packing:
    """Return whether an operand is packed one tile of features after the other, which has this many bytes in
    each row, for all threads together. A row is loaded once for `block_rows` rows of the matrix.

    >>> matrix = Stats(rows=4096, columns=4096, nnz=256 * 4096, longest_row=300, empty_rows=0)
    >>> cases = (256, 8), (512, 8), (256, 16)
    >>> packings = [shared_tile_packing(size, Machine(), matrix, block_rows=rows) for size, rows in cases]
    >>> [packing.obstacle for packing in packings]
    [None, 'large copy', 'few uses']
    """
    size = stats.columns * tile_bytes
    room = machine.private_cache
    uses = block_rows * SHARED_TILE_LOADS
    return packing_of(stats, uses=uses, copy=size, room=room, operand=size)
