"""Axes whose coordinates are the bits of words, in which a kernel sets those of the elements."""

from __future__ import annotations

import numpy as np

from gossamer_formats.checks.index_checks import require_word
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    AxisResult,
    BuildState,
    CompressedAxis,
)
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
)
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    first_slot,
    offsets_from_lengths,
)
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.statements import let
from gossamer_formats.conversion.by_kernels.recording.array_scalars import sum_of
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import add, index_var, widen
from gossamer_ir.facts.index_arrays import bit_counts
from gossamer_ir.nodes import Binary, Call, Cast, Const, Expr, Load, Store

WORD = "uint64"
"""The dtype of words in kernels."""


def add_bits(state: BuildState, new: CompressedAxis, indptr: Indptr) -> AxisResult:
    """Return an axis with a word for each fiber. The slot of a coordinate follows from the bits below it."""
    axis, parent, recorder = new.axis, new.parent, state.recorder
    require_word(axis, new.indices, length=state.sizes.value(axis.length))
    bit = Binary("shl", Const(WORD, "1"), Cast(WORD, coordinate_along(state, new.name)))
    words = recorder.compute(np.zeros, parent.size.value, WORD)
    fiber = index_var("g_")
    with_bit = Binary("bitor", Load("WORDS", (fiber,), WORD), bit)
    query = {"WORDS": ArrayArgument(words, WORD, (parent.size.expr,))}
    run_query(state, [let(fiber.name, parent.slot), Store("WORDS", (fiber,), with_bit)], query)
    # Counted in the words, not by the elements: repeated coordinates set one bit.
    counts = recorder.compute(bit_counts, words)
    count = recorder.compute(sum_of, counts)
    offsets = offsets_from_lengths(state, indptr, lengths=counts, most=count)
    first = first_slot(state, axis, offsets=offsets, parent=parent)
    array = f"WORDS_{axis.name}"
    state.arguments.array(array, words, WORD, parent.size.expr)
    slot = add(first, _bits_below(Load(array, (parent.slot,), WORD), bit))
    complete = BuiltStorage({new.indices.handle: IndexArray(words, WORD)})
    return AxisResult(
        sized_slot(state, axis, slot, offsets.total),
        storage=offsets.storage.extend(complete),
    )


def _bits_below(word: Expr, bit: Expr) -> Expr:
    """Return how many bits below one are set in a word."""
    below = Binary("bitand", word, Binary("sub", bit, Const(WORD, "1")))
    return widen(Call("popcount", (below,), WORD))
