"""Tiles of features of a dense operand, each packed by the thread that computes with it: their size, and
whether they pay. The rule that schedules products of rows and the model of their cost agree on it.

Rows of many features come from a distant cache. A copy of some of their features is small, and a thread that
makes it for itself reads it from a nearer cache, with no other thread's lines in between. The costs are
the copy, and a row's elements and its result once for each tile.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_heuristics.operand_copies import MANY_USES, Packing, packing_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

TILE_BYTES = 256
"""Bytes of a row of a packed tile (measured on Emerald Rapids: 512 bytes take 1.0 to 1.7 times as long)."""

LONG_PACKED_ROW = 64
"""Mean number of elements from which packing pays for an operand that exceeds the private cache. (Measured
on one and two threads of Emerald Rapids, times as fast as without packing, at 2, 4 and 8 MB: rows of 64
elements at random 1.4, 2.0 to 2.4, 2.4 to 2.6, near the diagonal 0.96, 1.0, 1.5 to 1.7; rows of 80 elements
1.4 to 1.7, 2.5 to 2.9, 2.6 to 2.8, near the diagonal 1.0, 1.0 to 1.1, 1.4 to 1.6; pruned weights with 80 to
461 elements 1.0 to 2.8.)"""

LARGE_OPERAND = 4
"""Maximum size that an operand must have, as a multiple of the private cache. Shorter rows leave less work
for each copy, and need an operand that is larger by the square of what they are shorter. (Measured as above:
near the diagonal, rows of 40 elements 0.9 at 2 MB, 0.9 to 1.0 at 4 MB, 1.4 to 1.5 at 8 MB; rows of 48 and 56
elements 0.93 to 1.03 at 2 MB, 1.0 to 1.05 at 4 MB, 1.4 to 1.6 at 8 MB; finite elements with 59 elements 0.84
at 2.4 MB, 1.0 to 1.05 at 4.8 MB, 1.1 to 1.2 at 9.5 MB; a flow with 29 elements 0.7 at 2.6 MB, 0.8 at 5.2 MB,
1.1 at 10 MB; a graph with 31 elements 0.9 at 7.5 MB, 1.2 to 1.5 at 15 MB, 1.5 to 1.8 at 30 MB, 1.7 to 2.1 at
60 MB and 120 MB. Rows of 32 to 56 elements at random gain 1.2 to 1.5 at 2 MB already, but statistics do not
tell where elements are.)"""

GRAPH_USES = 24
"""Minimum mean number of times that a row of the operand is used, for shorter rows (measured: 1.2 to 2.1 with
31 uses, 0.9 with 16, 0.8 with 11). Longer rows need `MANY_USES` (measured: 1.4 to 1.8 with 20 uses)."""

COPY_DIVISOR = 4
"""The copy of a tile has at most a quarter of the shared cache: each thread has one."""

MIN_BUSY = 0.8
"""Minimum fraction of the cores that compute if tiles are distributed among them."""


def packed_vectors(dtype: str, machine: Machine) -> int:
    """Return the number of vectors of a row of a packed tile.

    >>> narrow = Machine(min_vector_bits=128, vector_registers=16)
    >>> [packed_vectors("float32", machine) for machine in (Machine(), narrow)]
    [4, 8]
    """
    row_bits = max(8, DType.parse(dtype).bits) * machine.lanes(dtype)
    return min(machine.accumulators, max(1, TILE_BYTES * 8 // row_bits))


def thread_tile_packing(features: int, dtype: str, machine: Machine, stats: Stats) -> Packing:
    """Return whether tiles of this many features are packed.

    >>> matrix = Stats(rows=4096, columns=4096, nnz=64 * 4096, longest_row=80, empty_rows=0)
    >>> few_cores = Machine(cores=2)
    >>> [thread_tile_packing(features, "float32", few_cores, matrix).obstacle for features in (520, 512, 32)]
    ['partial tiles', None, 'partial tiles']
    >>> thread_tile_packing(512, "float32", Machine(cores=16), matrix).obstacle
    'idle cores'
    """
    tiles, rest = divmod(features, packed_vectors(dtype, machine) * machine.lanes(dtype))
    is_long = stats.mean_row >= LONG_PACKED_ROW
    operand = stats.columns * features * DType.parse(dtype).bits // 8
    packing = packing_of(
        stats,
        uses=MANY_USES if is_long else GRAPH_USES,
        operand=operand,
        least=int(machine.private_cache * min_operand(stats.mean_row)),
        copy=operand // max(1, tiles),
        room=machine.shared_cache // COPY_DIVISOR,
    )
    if rest or tiles < 2:
        return replace(packing, obstacle="partial tiles")
    return (
        packing
        if keeps_cores_busy(tiles, machine.cores)
        else replace(packing, obstacle="idle cores")
    )


def min_operand(mean_row: float) -> float:
    """Return the minimum size of an operand for packing to pay, as a multiple of the private cache.

    >>> [min_operand(mean_row) for mean_row in (80, 48, 32, 8)]
    [1.0, 1.7777777777777777, 4.0, 4.0]
    """
    shorter = max(1.0, LONG_PACKED_ROW / max(mean_row, 1.0))
    return min(float(LARGE_OPERAND), shorter**2)


def keeps_cores_busy(tiles: int, cores: int) -> bool:
    """Return whether most cores have a tile at any time.

    >>> [keeps_cores_busy(tiles, cores=4) for tiles in (2, 4, 5, 16, 17)]
    [False, True, False, True, True]
    """
    rounds = -(-tiles // cores)
    return tiles >= MIN_BUSY * rounds * cores
