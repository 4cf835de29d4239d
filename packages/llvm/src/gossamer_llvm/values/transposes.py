"""Reduces the lanes of several vectors together: the shuffles of a transpose, with operations in between.

Each level combines a pair of vectors to one, with half as many partial results of each. After log2(n)
levels, n vectors are one. That takes n - 1 operations and 2 (n - 1) shuffles; separate reductions take
n log2(n) of both. The levels are those of a matrix transpose (H. S. Warren, Hacker's Delight, 2nd
edition, section 7-3).

The levels depend on the number of lanes. Scalable vectors are reduced one by one: Arm SVE has an
instruction for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer_ir.core.dtypes import DType, scalar_of, with_lanes
from gossamer_ir.nodes import ReduceOp, TransposeReduce
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import insert_elements
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.values.operations import emit_operation
from gossamer_llvm.values.scalars_and_vectors import reduce_vector

_BLOCK_BITS = 128
"""Shuffles within blocks of this size, and of whole blocks, are one instruction on all targets."""


def emit_transpose_reduce(emitter: FunctionEmitter, node: TransposeReduce) -> Value:
    """Emit a transpose-reduce, of fixed lanes in groups of as many values as they have lanes."""
    values = [emitter.expr(value) for value in node.values]
    dtype = DType.parse(values[0].dtype)
    if dtype.scalable:
        reduced = [reduce_vector(emitter, node.op, value) for value in values]
        return insert_elements(emitter, reduced, with_lanes(dtype.scalar, len(reduced)))
    lanes = dtype.lanes
    parts = [
        _reduce_values(emitter, node.op, values[start : start + lanes])
        for start in range(0, len(values), lanes)
    ]
    while len(parts) > 1:
        parts = [_concatenate(emitter, *pair) for pair in _pairs(parts)]
    return parts[0]


def _reduce_values(emitter: FunctionEmitter, op: ReduceOp, values: Sequence[Value]) -> Value:
    """Return a vector with one lane for each value; there are at most as many values as lanes."""
    dtype = DType.parse(values[0].dtype)
    lanes, count = dtype.lanes, len(values)
    block = min(lanes, _BLOCK_BITS // dtype.bits)
    unit = 1
    while len(values) > 1:
        # Shuffles across blocks of 128 bits are slower, so all steps within blocks come first.
        is_inside = unit < block
        halves = (
            _interleave_lanes(lanes, block, unit) if is_inside else _alternate(2 * lanes, block)
        )
        values = [_combine_halves(emitter, op, pair, halves) for pair in _pairs(values)]
        unit *= 2
    result = values[0]
    # Fewer values than lanes: each value still has several partial results,
    # which are combined with themselves.
    while lanes > count:
        halves = _alternate(lanes, min(block, count))
        result = _combine_halves(emitter, op, (result, result), halves)
        lanes //= 2
    return result


def _interleave_lanes(lanes: int, block: int, unit: int) -> tuple[list[int], list[int]]:
    """Return the lanes that interleave units of the lower block halves of two vectors, and of the upper ones.

    >>> _interleave_lanes(4, 4, 1), _interleave_lanes(4, 4, 2)
    (([0, 4, 1, 5], [2, 6, 3, 7]), ([0, 1, 4, 5], [2, 3, 6, 7]))
    """
    low = [
        vector + start + lane
        for first in range(0, lanes, block)
        for start in range(first, first + block // 2, unit)
        for vector in (0, lanes)
        for lane in range(unit)
    ]
    return low, [lane + block // 2 for lane in low]


def _alternate(lanes: int, unit: int) -> tuple[list[int], list[int]]:
    """Return the lanes of the even units, and of the odd units.

    >>> _alternate(8, 2)
    ([0, 1, 4, 5], [2, 3, 6, 7])
    """
    low = [start + lane for start in range(0, lanes, 2 * unit) for lane in range(unit)]
    return low, [lane + unit for lane in low]


def _combine_halves(
    emitter: FunctionEmitter,
    op: ReduceOp,
    pair: tuple[Value, Value],
    halves: tuple[list[int], list[int]],
) -> Value:
    low, high = (_shuffle(emitter, pair, lanes) for lanes in halves)
    return emit_operation(emitter, op, low, high)


def _concatenate(emitter: FunctionEmitter, low: Value, high: Value) -> Value:
    return _shuffle(emitter, (low, high), list(range(2 * DType.parse(low.dtype).lanes)))


def _shuffle(emitter: FunctionEmitter, pair: tuple[Value, Value], lanes: Sequence[int]) -> Value:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    text = f"shufflevector {pair[0].typed}, {pair[1].typed}, <{len(lanes)} x i32> <{mask}>"
    return Value(emitter.builder.value(text), with_lanes(scalar_of(pair[0].dtype), len(lanes)))


def _pairs(values: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    return zip(values[::2], values[1::2], strict=True)
