"""The decision to pack a dense operand: it is copied to aligned addresses before its rows are used.

No load of the copy crosses a cache line, and the copy of a tile of features is contiguous. If it stays in the
private cache, all rows of the matrix read it from there.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.cost.reuse import MANY_USES, is_used_often
from gossamer_schedule.rules.cost.verdict import Verdict, pays, pays_not
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

GATHERED_PART = 2
"""Packing gathered rows pays for an operand of at most half of the private cache, from which the copy is read
(measured: as fast as without if it fills the cache)."""

GATHERED_USES = 32
"""Minimum mean number of times that a gathered row is used for packing to pay on several threads, which read
the copy from the cache of the one that wrote it (measured on Emerald Rapids at 20 to 29 uses: 0.6 to 0.8 of
the time on one thread, 1.1 to 1.9 on two; at 59 uses 0.7 to 0.75 on either)."""


def row_packing(gather: Gather, hardware: HardwareParams, stats: Stats | None) -> Verdict:
    """Decide whether all rows that a loop gathers are packed."""
    room = hardware.private_cache // GATHERED_PART
    size = gather.operand_bytes(stats)
    return _packing(gather.operand, size, room=room, stats=stats, uses=GATHERED_USES)


def tile_packing(
    pattern: BlockReduction, tiles: VectorTiles, hardware: HardwareParams, stats: Stats | None
) -> Verdict:
    """Decide whether the operand of a product of blocks is packed, one tile of features after the other. A
    tile has the features of all rows of the operand."""
    if tiles.tiles in (None, 0, 1):
        return pays_not("there are not several tiles of features")
    bits = max(8, DType.parse(pattern.dtype).bits)
    size = 0 if stats is None else stats.columns * tiles.vectors * tiles.lanes * bits // 8
    return _packing(pattern.operand, size, room=hardware.private_cache, stats=stats, uses=MANY_USES)


def _packing(
    operand: str | None, size: int, *, room: int, stats: Stats | None, uses: int
) -> Verdict:
    """Decide whether a copy of so many bytes pays, which has so much room in the private cache, if rows are
    used so often."""
    if not operand:
        return pays_not("there is not exactly one dense operand")
    if stats is None:
        return pays_not(f"without statistics of the data, the size of {operand} is unknown")
    if not is_used_often(stats, uses=uses):
        return pays_not(f"a row of {operand} is used fewer than {uses} times on average")
    if size > room:
        return pays_not(
            f"the copy would take {size_in_words(size)}, and {size_in_words(room)} of the private cache "
            "are for it"
        )
    return pays(
        f"each of its rows is used {uses} times or more on average, the copy of "
        f"{size_in_words(size)} stays in the private cache, and no load of it crosses a cache line"
    )
