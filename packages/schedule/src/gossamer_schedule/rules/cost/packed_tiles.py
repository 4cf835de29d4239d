"""The decision to pack tiles of features of gathered rows, each by the thread that computes with it.

Rows of many features come from a distant cache. A copy of some of their features is small, and a thread that
makes it for itself reads it from a nearer cache, with no other thread's lines in between. What this costs is
the copy, and a row's elements and its result once for each tile.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.cost.reuse import MANY_USES, is_used_often
from gossamer_schedule.rules.cost.verdict import Verdict, pays, pays_not
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding

TILE_BYTES = 256
"""Bytes of a row of a packed tile (measured on Emerald Rapids: 512 bytes take 1.0 to 1.7 times as long)."""

LONG_PACKED_ROW = 64
"""Mean number of elements from which the costs of a row hardly count. (Measured on two threads of Emerald
Rapids, times as fast as without packing: rows of 80 to 461 elements 1.0 to 2.8 from the size of the private
cache up; finite elements with rows of 59 elements 0.85 at 2.5 MB, 1.1 at 5 and 10 MB.)"""

LARGE_OPERAND = 4
"""Minimum size of the operand for shorter rows, as a multiple of the private cache (measured: a graph with 31
elements in a row 0.9 at 7.5 MB, 1.2 to 1.5 at 15 MB, 1.5 to 1.8 at 30 MB, 1.7 to 2.1 at 60 MB and 120 MB; a
flow with 29 elements 0.7 at 2.6 MB, 0.8 at 5.2 MB, 1.1 at 10 MB)."""

GRAPH_USES = 24
"""Minimum mean number of times that a row of the operand is used, for shorter rows (measured: 1.2 to 2.1 with
31 uses, 0.9 with 16, 0.8 with 11). Longer rows need `MANY_USES` (measured: 1.4 to 1.8 with 20 uses)."""

COPY_PART = 4
"""The copy of a tile has at most this fraction of the shared cache: each thread has one."""

MIN_BUSY = 0.8
"""Minimum fraction of the cores that compute if tiles are distributed among them."""


class PackedTiles(NamedTuple):
    """Tiles of features, and whether they are packed."""

    tiles: VectorTiles
    packing: Verdict


def packed_tiles(gather: Gather, hardware: HardwareParams, stats: Stats | None) -> PackedTiles:
    """Return the tiles of gathered rows that would be packed, and whether that pays."""
    bits = max(8, DType.parse(gather.dtype).bits)
    lanes = hardware.lanes(gather.dtype)
    vectors = min(hardware.accumulators, max(1, TILE_BYTES * 8 // (bits * lanes)))
    tiles = tiles_holding(gather.features, vectors=vectors, lanes=lanes)
    return PackedTiles(tiles, _packing(gather, tiles, hardware, stats))


def _packing(
    gather: Gather, tiles: VectorTiles, hardware: HardwareParams, stats: Stats | None
) -> Verdict:
    """Decide whether tiles are packed."""
    operand, count = gather.operand, tiles.tiles
    if not operand or count in (None, 0, 1) or not tiles.is_exact:
        return pays_not("there are not several whole tiles of features of one dense operand")
    if stats is None:
        return pays_not(f"without statistics of the data, the size of {operand} is unknown")
    if not _occupies(count, hardware.cores):
        cores = counted(hardware.cores, "core")
        return pays_not(f"{counted(count, 'tile')} would not keep {cores} busy")
    is_long = stats.mean_row >= LONG_PACKED_ROW
    uses = MANY_USES if is_long else GRAPH_USES
    if not is_used_often(stats, uses=uses):
        return pays_not(f"a row of {operand} is used fewer than {uses} times on average")
    size = gather.operand_bytes(stats)
    least = hardware.private_cache * (1 if is_long else LARGE_OPERAND)
    if size < least:
        return pays_not(
            f"{operand} has {size_in_words(size)}, and rows of {stats.mean_row:.3g} elements pay for packing "
            f"from {size_in_words(least)}"
        )
    copy, room = size // count, hardware.shared_cache // COPY_PART
    if copy > room:
        return pays_not(
            f"the copy of a tile would take {size_in_words(copy)}, and {size_in_words(room)} of the shared "
            "cache are for it"
        )
    return pays(
        f"{operand} has {size_in_words(size)}, the copy of a tile {size_in_words(copy)}; each row of it is "
        f"used {uses} times or more on average, from a cache nearer to the core"
    )


def _occupies(tiles: int, cores: int) -> bool:
    """Return whether most cores have a tile at any time.

    >>> [_occupies(tiles, cores=4) for tiles in (2, 4, 5, 16, 17)]
    [False, True, False, True, True]
    """
    rounds = -(-tiles // cores)
    return tiles >= MIN_BUSY * rounds * cores
