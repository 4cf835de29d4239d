"""Indices of gathers, loaded two at a time: a gather as scalar loads is bound by the number of loads."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.lane_projection import lane_of
from gossamer_ir.core.build import index
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Expr, Load
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.memory.addresses import (
    are_consecutive_lanes,
    emit_address,
    without_unit_dimensions,
)


def load_indices_in_pairs(emitter: FunctionEmitter, indices: Iterable[Expr]) -> None:
    """Load the lanes of index vectors of int32 as pairs in 64-bit registers, and remember each lane as the
    value of its scalar load (measured on SpMV: 1.1 to 1.2 times faster).

    Only vectors of consecutive elements in memory that the function does not write are loaded. Machines are
    little-endian: the first of two elements is in the low half.
    """
    for at in indices:
        for load in collect(Load, at):
            if _is_in_pairs(emitter, load):
                _load_pairs(emitter, load)


def _is_in_pairs(emitter: FunctionEmitter, load: Load) -> bool:
    dtype = DType.parse(load.dtype)
    is_even = dtype.is_vector and not dtype.scalable and dtype.lanes % 2 == 0
    location = emitter.buffers[load.buffer]
    return (
        is_even
        and dtype.scalar == "int32"
        and load.predicate is None
        and load.buffer in emitter.info.unchanging
        and not location.private_elements
        and are_consecutive_lanes(without_unit_dimensions(location, load.indices))
    )


def _load_pairs(emitter: FunctionEmitter, load: Load) -> None:
    builder = emitter.builder
    for first in range(0, DType.parse(load.dtype).lanes, 2):
        low, high = (lane_of(load, index(lane)) for lane in (first, first + 1))
        assert isinstance(low, Load)
        assert isinstance(high, Load)
        if emitter.available.load(low) is not None:
            continue
        address = emit_address(emitter, low.buffer, low.indices, is_certain=True)
        pair = builder.value(f"load i64, ptr {address.pointer}, align 4")
        shifted = builder.value(f"lshr i64 {pair}, 32")
        for half, lane in ((pair, low), (shifted, high)):
            emitter.add_available(lane, Value(builder.value(f"trunc i64 {half} to i32"), "int32"))
