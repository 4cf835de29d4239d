"""Axes whose coordinates are the bits of words, in which a kernel sets those of the elements."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import bind_value_slot
from gossamer_formats.conversion.axes.fiber_offsets import add_offsets, pass_offsets
from gossamer_formats.conversion.axes.target_axes import (
    AxisSlot,
    IndexArray,
    TargetAxes,
    run_query,
)
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.statements import let
from gossamer_formats.conversion.maps.words import require_word
from gossamer_formats.conversion.recording.array_scalars import (
    sum_of,
)
from gossamer_ir.core.axis_kinds import Indices, Indptr
from gossamer_ir.core.build import add, index_var, widen
from gossamer_ir.nodes import Axis, Binary, Call, Cast, Const, Expr, Load, Store
from gossamer_ir.support.index_arrays import bit_counts

WORD = "uint64"
"""The dtype of words in kernels."""


def add_bits(
    state: TargetAxes, axis: Axis, indptr: Indptr, indices: Indices, parent: AxisSlot
) -> None:
    """Add an axis with a word for each fiber. The slot of a coordinate follows from the bits below it."""
    require_word(axis, indices, length=state.sizes.value(axis.length))
    recorder, fiber = state.recorder, index_var("g_")
    bit = Binary("shl", Const(WORD, "1"), Cast(WORD, state.coordinates[axis.name]))
    words = recorder.compute(np.zeros, parent.size.value, WORD)
    with_bit = Binary("bitor", Load("WORDS", (fiber,), WORD), bit)
    query = {"WORDS": ArrayArgument(words, WORD, (parent.size.expr,))}
    run_query(state, [let(fiber.name, parent.slot), Store("WORDS", (fiber,), with_bit)], query)
    counts = recorder.compute(bit_counts, words)
    offsets = add_offsets(state, indptr, counts, recorder.compute(sum_of, counts))
    state.arrays[indices.handle] = IndexArray(words, WORD)
    first = pass_offsets(state, axis, offsets, parent)
    name = f"WORDS_{axis.name}"
    state.arguments.array(name, words, WORD, parent.size.expr)
    assert offsets.largest is not None
    slot = add(first, _bits_below(Load(name, (parent.slot,), WORD), bit))
    bind_value_slot(state, axis, slot, offsets.largest)


def _bits_below(word: Expr, bit: Expr) -> Expr:
    """Return how many bits below one are set in a word."""
    below = Binary("bitand", word, Binary("sub", bit, Const(WORD, "1")))
    return widen(Call("popcount", (below,), WORD))
