"""Packing of a dense operand: its rows are copied to aligned addresses before they are used.

No load of the copy crosses a cache line, and the copy of a tile of features is contiguous. There are three
ways to pack: all rows at once, a tile of features that all threads share, or a tile for each thread. The
verdict about the last one is in `thread_tiles`. The sizes and their limits are in
`gossamer_heuristics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_heuristics.operand_copies import Packing, row_packing, shared_tile_packing
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.parallel_rows import grain
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unknown_size_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.steps.register_tiles import copy_in_vectors
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles
from gossamer_support.message_texts import readable_size

if TYPE_CHECKING:
    from gossamer_schedule.rules.decisions.block_tile import RegisterTile
    from gossamer_schedule.rules.patterns.block_reduction import BlockReduction


def row_packing_verdict(gather: Gather, machine: Machine, *, stats: Stats | None) -> Verdict:
    """Decide whether all rows that a loop gathers are packed at once."""
    if not gather.operand:
        return not_one_operand_verdict()
    if stats is None:
        return unknown_size_verdict(gather.operand)
    packing = row_packing(gather.row_bytes, machine, stats)
    return _private_cache_verdict(packing, gather.operand)


def shared_tile_verdict(
    pattern: BlockReduction, tile: RegisterTile, *, machine: Machine, stats: Stats | None
) -> Verdict:
    """Decide whether the operand of a product of blocks is packed, one tile of features after the other. A
    tile has the features of all rows of the operand, and all threads read the copy."""
    tiles = tile.features
    if tiles.tiles in (None, 0, 1):
        return unprofitable_verdict("there are not several tiles of features")
    if not pattern.operand:
        return not_one_operand_verdict()
    if stats is None:
        return unknown_size_verdict(pattern.operand)
    bits = max(8, DType.parse(pattern.dtype).bits)
    tile_bytes = tiles.vectors * tiles.lanes * bits // 8
    packing = shared_tile_packing(tile_bytes, machine, stats, block_rows=tile.rows)
    return _private_cache_verdict(packing, pattern.operand)


def not_one_operand_verdict() -> Verdict:
    """Return the verdict against packing where several dense operands are read, or none."""
    return unprofitable_verdict("there is not exactly one dense operand")


def _private_cache_verdict(packing: Packing, operand: str) -> Verdict:
    """Return the verdict about a copy that would stay in the private cache, from which all rows of the matrix
    read it."""
    if not packing.is_profitable:
        return packing_refusal_verdict(packing, operand, copy="the copy", cache="private cache")
    return profitable_verdict(
        f"each of its rows is used {packing.uses} times or more on average, the copy of "
        f"{readable_size(packing.copy)} stays in the private cache, and no load of it crosses a cache line"
    )


def packing_refusal_verdict(packing: Packing, operand: str, *, copy: str, cache: str) -> Verdict:
    """Return the verdict against packing an operand whose rows are used too rarely, or whose copy is too
    large for its part of a cache."""
    if packing.obstacle == "few uses":
        return unprofitable_verdict(
            f"a row of {operand} is used fewer than {packing.uses} times on average"
        )
    size, room = readable_size(packing.copy), readable_size(packing.room)
    return unprofitable_verdict(f"{copy} would take {size}, and {room} of the {cache} are for it")


def pack_operand(
    trace: TraceBuilder,
    block_name: str,
    *,
    tiles: VectorTiles,
    operand: str,
    loop_name: str,
    ndim: int,
    is_shared: bool = True,
) -> None:
    """Pack what a block reads of an operand in an iteration of a loop. Its last dimension are the features of
    a tile. Threads pack a copy that they share in parallel."""
    copy = copy_in_vectors(
        trace,
        block_name,
        tiles,
        buffer=operand,
        loop=loop_name,
        scope="global",
        ndim=ndim,
    )
    # Over the rows of the copy: a tile has too few features for several threads.
    if is_shared:
        trace.record.parallel(loop=copy.loops[0], grain=grain(tiles.vectors))
