"""Whether the dense operand of a product of blocks is packed, one tile of features after the other.

A panel is a tile of features of all rows of the operand. Packed, it is contiguous and begins at a cache line,
and if it stays in the private cache, the blocks of all rows read it from there. Otherwise each block row
reads its rows of the operand from the shared cache, at a stride of a whole row.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_schedule.rules.cost.register_tiles import Tile
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction

LEAST_TERMS = 16
"""Minimum mean number of stored elements of a column, each a multiply-add for every packed vector: then
packing takes a small part of the time (measured with 410 elements: 1.1 times faster with 128 features, 1.5 to
2.0 with 512)."""


def why_not_packed(
    pattern: BlockReduction,
    tile: Tile,
    tiles: int | None,
    hardware: HardwareParams,
    stats: Stats | None,
) -> str:
    """Return the reason not to pack panels of so many tiles of features; "" if there is none."""
    if not pattern.operand or not tiles or tiles == 1:
        return "there is not one operand with several tiles of features"
    if stats is None:
        return "without statistics of the data, its size is unknown"
    if stats.nnz < LEAST_TERMS * stats.columns:
        return f"a column has fewer than {LEAST_TERMS} stored elements on average"
    bits = max(8, DType.parse(pattern.dtype).bits)
    panel = stats.columns * tile.vectors * tile.lanes * bits // 8
    if panel > hardware.private_cache:
        return f"a tile of all its rows has {size_in_words(panel)}, more than the private cache"
    return ""
