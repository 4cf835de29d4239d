"""The axes so far: what each adds is seen by the kernels of those after it."""

from __future__ import annotations

import numpy as np
from build_state_of import build_state_of
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    axes_after,
    axes_before,
    has_full_ancestors,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import AxisResult, with_axis
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    ValueSlots,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SINGLE
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.nodes import Let

AXES = build_state_of(
    from_scipy(sparse.csr_array(np.eye(4))).storage, "bsr", block_rows=2, block_columns=2
)


def test_a_slot_that_is_computed_is_bound_once():
    row = AXES.by_name["IO"]
    var = with_axis(AXES, row, AxisResult(AxisSlot(index_var("r"), SINGLE)))
    assert var.axis_slots["IO"].slot == index_var("r")
    assert var.elements.stmts == AXES.elements.stmts
    computed = with_axis(AXES, row, AxisResult(AxisSlot(add(index_var("r"), ONE), SINGLE)))
    assert computed.axis_slots["IO"].slot == index_var("t_IO")
    assert computed.elements.stmts[-1] == Let(index_var("t_IO"), add(index_var("r"), ONE))


def test_the_value_is_in_the_slot_of_the_axis_unless_this_says_otherwise():
    row, slot, other = AXES.by_name["IO"], AxisSlot(index_var("r"), SINGLE), index_var("v")
    assert with_axis(AXES, row, AxisResult(slot)).value_slot == slot
    apart = AxisSlot(other, SINGLE)
    assert with_axis(AXES, row, AxisResult(slot, value_slot=apart)).value_slot == apart


def test_axes_stand_in_the_order_of_the_buffer():
    column = AXES.by_name["JO"]
    assert axes_before(AXES, column) == ["IO"]
    assert [axis.name for axis in axes_after(AXES, column)] == ["II", "JI"]
    assert has_full_ancestors(AXES, column)
    stored = build_state_of(from_scipy(sparse.csr_array(np.eye(4))).storage, "dcsr")
    inner = stored.by_name[stored.description.buffer.axes[-1]]
    assert not has_full_ancestors(stored, inner)


def test_the_outer_one_of_two_axes_counts_the_size_that_they_share():
    outer = BuiltStorage(slot_counts={"nnz": 3}, slots=ValueSlots(are_own=True))
    both = outer.extend(BuiltStorage(slot_counts={"nnz": 7, "more": 1}))
    assert both.slot_counts == {"nnz": 3, "more": 1}
    assert both.slots == ValueSlots(are_own=True)
