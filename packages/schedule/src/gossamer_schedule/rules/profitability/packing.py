"""The decision to pack a dense operand: it is copied to aligned addresses before its rows are used.

No load of the copy crosses a cache line, and the copy of a tile of features is contiguous. If it stays in the
private cache, all rows of the matrix read it from there.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine import packing
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.machine.packing import Packing
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction
from gossamer_schedule.rules.profitability.verdict import Verdict, pays, pays_not, unknown_size
from gossamer_schedule.rules.steps.vector_loops import VectorTiles


def row_packing(gather: Gather, hardware: HardwareParams, stats: Stats | None) -> Verdict:
    """Decide whether all rows that a loop gathers are packed."""
    if not gather.operand:
        return not_one_operand()
    if stats is None:
        return unknown_size(gather.operand)
    return _verdict(packing.row_packing(gather.row_bytes, hardware, stats), gather.operand)


def tile_packing(
    pattern: BlockReduction, tiles: VectorTiles, hardware: HardwareParams, stats: Stats | None
) -> Verdict:
    """Decide whether the operand of a product of blocks is packed, one tile of features after the other. A
    tile has the features of all rows of the operand."""
    if tiles.tiles in (None, 0, 1):
        return pays_not("there are not several tiles of features")
    if not pattern.operand:
        return not_one_operand()
    if stats is None:
        return unknown_size(pattern.operand)
    bits = max(8, DType.parse(pattern.dtype).bits)
    tile_bytes = tiles.vectors * tiles.lanes * bits // 8
    return _verdict(packing.shared_tile_packing(tile_bytes, hardware, stats), pattern.operand)


def not_one_operand() -> Verdict:
    """Return the verdict against packing where several dense operands are read, or none."""
    return pays_not("there is not exactly one dense operand")


def refusal(found: Packing, operand: str, *, copy: str, cache: str) -> Verdict:
    """Return the verdict against packing an operand whose rows are used too rarely, or whose copy is too
    large for its part of a cache."""
    if found.obstacle == "few uses":
        return pays_not(f"a row of {operand} is used fewer than {found.uses} times on average")
    size, room = size_in_words(found.copy), size_in_words(found.room)
    return pays_not(f"{copy} would take {size}, and {room} of the {cache} are for it")


def _verdict(found: Packing, operand: str) -> Verdict:
    """Return the verdict about a copy that would stay in the private cache."""
    if not found.pays:
        return refusal(found, operand, copy="the copy", cache="private cache")
    return pays(
        f"each of its rows is used {found.uses} times or more on average, the copy of "
        f"{size_in_words(found.copy)} stays in the private cache, and no load of it crosses a cache line"
    )
