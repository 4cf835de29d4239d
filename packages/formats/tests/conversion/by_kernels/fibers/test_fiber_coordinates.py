"""The distinct coordinates of each fiber, whether its elements are together or scattered."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, value_of
from scipy import sparse

from gossamer_formats import Storage, from_scipy
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.fibers.fiber_coordinates import fiber_coordinates
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.descriptions.coo import coo

MATRIX = sparse.random_array((8, 12), density=0.25, format="csr", rng=5, dtype=np.float64)


def blocks_of(source):
    """The columns of blocks in each row of blocks, and their offsets."""
    axes = build_state_of(source, "bsr", block_rows=2, block_columns=3)
    parent = AxisSlot(coordinate_along(axes, "IO"), axes.elements.coordinates["IO"].length)
    listed = fiber_coordinates(axes, axes.by_name["JO"], parent, are_sorted=True)
    offsets, coordinates = (value_of(axes, each) for each in (listed.offsets, listed.coordinates))
    assert value_of(axes, listed.total) == coordinates.size
    return [each.tolist() for each in np.split(coordinates, offsets[1:-1])]


def expected(matrix):
    coordinates = matrix.tocoo()
    rows, columns = coordinates.row // 2, coordinates.col // 3
    return [np.unique(columns[rows == row]).tolist() for row in range(4)]


def test_rows_of_blocks_have_their_distinct_columns_in_order():
    assert blocks_of(from_scipy(MATRIX).storage) == expected(MATRIX)
    assert any(len(row) > 1 for row in expected(MATRIX))


def test_rows_of_blocks_without_elements_are_empty():
    empty = sparse.csr_array(([1.0], ([5], [7])), shape=(8, 12))
    assert blocks_of(from_scipy(empty).storage) == [[], [], [2], []]


def test_scattered_elements_that_may_be_repeated_are_to_be_sorted():
    coordinates = MATRIX.tocoo()
    order = np.random.default_rng(0).permutation(MATRIX.nnz)
    arrays = {
        "indices_0": coordinates.row[order].astype(np.int32),
        "indices_1": coordinates.col[order].astype(np.int32),
        "data": coordinates.data[order],
    }
    sizes = {"n0": 8, "n1": 12, "nnz": MATRIX.nnz}
    with pytest.raises(NotDirectError) as caught:
        blocks_of(Storage(coo("float64", sorted=False), sizes, arrays))
    assert caught.value.needs_order
