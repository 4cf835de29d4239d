"""The number of elements of each fiber, which must be sorted: known, or found by the kernel that counts."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, value_of
from scipy import sparse

from gossamer_formats import Storage, from_scipy
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import ROOT_SLOT, AxisSlot
from gossamer_formats.conversion.by_kernels.fibers.fiber_counts import (
    fiber_counts,
    is_grouped,
    is_sorted,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.descriptions.coo import coo

MATRIX = sparse.random_array((7, 9), density=0.4, format="csr", rng=3, dtype=np.float64)


def counts_of(source, destination, axis):
    """The number of elements at each coordinate of an axis, if `destination` has the others in a fiber."""
    axes = build_state_of(source, destination)
    length = axes.elements.coordinates[axis].length
    parent = AxisSlot(coordinate_along(axes, axis), length)
    (key,) = [name for name in axes.description.buffer.axes if name != axis]
    return value_of(axes, fiber_counts(axes, parent, [key])).tolist()


def list_of(rows, columns):
    arrays = {
        "indices_0": np.array(rows, np.int32),
        "indices_1": np.array(columns, np.int32),
        "data": np.ones(len(rows)),
    }
    return Storage(coo("float64", sorted=False), {"n0": 7, "n1": 9, "nnz": len(rows)}, arrays)


def test_columns_of_rows_are_counted():
    source = from_scipy(MATRIX).storage
    assert counts_of(source, "csc", "J") == MATRIX.count_nonzero(axis=0).tolist()


def test_a_list_in_any_order_of_rows_is_counted_if_each_row_is_sorted():
    assert counts_of(list_of([3, 0, 3, 1], [2, 5, 4, 0]), "csr", "I") == [1, 1, 0, 2, 0, 0, 0]


@pytest.mark.parametrize("columns", [(4, 2), (2, 2)], ids=["descending", "repeated"])
def test_a_row_that_is_not_sorted_is_found(columns):
    with pytest.raises(NotDirectError) as caught:
        counts_of(list_of([3, 3], columns), "csr", "I")
    assert caught.value.needs_order


def test_the_only_fiber_has_all_elements():
    axes = build_state_of(from_scipy(MATRIX).storage, "coo")
    counts = fiber_counts(axes, ROOT_SLOT, ["I0", "I1"])
    assert value_of(axes, counts).tolist() == [MATRIX.nnz]


def test_what_is_known_about_the_order_of_rows():
    by_rows = build_state_of(from_scipy(MATRIX).storage, "csr")
    assert is_sorted(by_rows, ["J"])
    assert is_grouped(by_rows, by_rows.by_name["J"])
    by_columns = build_state_of(from_scipy(MATRIX).storage, "csc")
    inner = by_columns.description.buffer.axes[-1]
    assert is_sorted(by_columns, [inner])
    assert not is_grouped(by_columns, by_columns.by_name[inner])
