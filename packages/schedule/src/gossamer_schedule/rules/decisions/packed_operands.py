"""A dense operand that is packed: copied to aligned addresses before a loop reads it."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Iteration
from gossamer_schedule.rules.analysis.taken_names import copy_names, has_taken
from gossamer_schedule.rules.profitability.thread_work import grain
from gossamer_schedule.rules.steps.register_tiles import copy_in_vectors
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

_SCOPE = "global"


def pack_operand(
    trace: TraceBuilder,
    block: str,
    tiles: VectorTiles,
    *,
    operand: str,
    loop: str,
    dimensions: int,
    is_shared: bool = True,
) -> None:
    """Pack what a block reads of an operand in an iteration of a loop. Its last dimension are the features of
    a tile. Threads pack a copy that they share in parallel."""
    copy = copy_in_vectors(
        trace, block, tiles, buffer=operand, loop=loop, scope=_SCOPE, dimensions=dimensions
    )
    if is_shared:
        trace.add("parallel", loop=copy.loops[0], grain=grain(tiles.vectors))


def may_pack(function: Function, iteration: Iteration, *, block: str, operand: str | None) -> bool:
    """Return whether the program leaves free the names that packing the operand of a block makes; without an
    operand there are none."""
    if operand is None:
        return True
    names = copy_names(block, operand, scope=_SCOPE)
    return not has_taken(function, iteration, names=names, copied=[operand])
