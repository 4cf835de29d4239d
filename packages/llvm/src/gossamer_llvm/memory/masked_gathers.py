"""A masked gather of few lanes as scalar loads of all its lanes, which are blended by the mask.

Scalar loads are faster than a gather on most CPUs, but a masked lane may have no element. It has one if its
index is an element of an index array whose values are all in bounds: then the lanes past the end of a row
load what the next row selects. Only at the ends of that array the gather is an instruction.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import add, index, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Cast, Expr, InRange, Load, Ramp
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.memory.addresses import are_consecutive_lanes, without_unit_dimensions


class WholeGather(msgspec.Struct, frozen=True):
    """The gather of all lanes, which is in bounds if the elements from `begin` to `end` of the index array
    exist, of which there are `size`."""

    load: Load
    begin: Expr
    end: Expr
    size: Expr


def whole_gather(emitter: FunctionEmitter, node: Load) -> WholeGather | None:
    """Return the gather of the lanes of a masked gather, also those that are not enabled; None for other
    loads, and if nothing is known of their indices."""
    location = emitter.buffers[node.buffer]
    indices = without_unit_dimensions(location, node.indices)
    index_load = _masked_index(node, indices)
    if index_load is None or not _are_in_bounds(emitter, index_load, location.buffer.shape[0]):
        return None
    (first,) = index_load.indices
    assert isinstance(first, Ramp)
    lanes: Expr = replace(index_load, predicate=None, passthrough=None)
    if isinstance(indices[0], Cast):
        lanes = replace(indices[0], value=lanes)
    load = replace(node, indices=(lanes, *node.indices[1:]), predicate=None, passthrough=None)
    (size,) = emitter.buffers[index_load.buffer].buffer.shape
    end = add(first.base, index(DType.parse(node.dtype).lanes))
    return WholeGather(load, first.base, end, size)


def _masked_index(node: Load, indices: tuple[Expr, ...]) -> Load | None:
    """Return the load of consecutive indices, by the same mask, that are the lanes of a gather."""
    if len(indices) != 1:
        return None
    lanes = indices[0].value if isinstance(indices[0], Cast) else indices[0]
    if not isinstance(lanes, Load) or len(lanes.indices) != 1:
        return None
    is_row = lanes.predicate == node.predicate and are_consecutive_lanes(lanes.indices)
    return lanes if is_row else None


def _are_in_bounds(emitter: FunctionEmitter, index_load: Load, extent: Expr) -> bool:
    interval = emitter.info.facts.last(index_load.buffer, InRange)
    if interval is None or interval.high != extent:
        return False
    low = integer_value(interval.low)
    return low is not None and low >= 0 and index_load.buffer in emitter.info.unchanging
