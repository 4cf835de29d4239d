"""Tables of all coordinates: which occur, and their ranks; none that is much larger than the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, value_of
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import (
    MIN_TABLE,
    TABLE_FACTOR,
    occurring,
    rank_in_table,
    require_table,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_ir.nodes import Load
from gossamer_ir.traversal.walk import collect


def axes_of(matrix, *, needs_one_kernel=False):
    return build_state_of(from_scipy(matrix).storage, "csr", needs_one_kernel=needs_one_kernel)


MATRIX = sparse.csr_array(([1.0, 2.0, 3.0], ([0, 2, 2], [4, 1, 4])), shape=(3, 6))


def test_the_coordinates_that_occur_are_listed_in_order():
    axes = axes_of(MATRIX)
    columns = axes.elements.coordinates["J"]
    listed = occurring(axes, columns.value, columns.length)
    assert value_of(axes, listed).tolist() == [1, 4]
    rank = rank_in_table(axes, "J", value=columns.value, listed=listed, size=columns.length)
    (load,) = collect(Load, rank)
    assert load.indices == (columns.value,)
    table = value_of(axes, axes.arguments.by_name[load.buffer].array)
    assert table[[1, 4]].tolist() == [0, 1]


def test_a_query_is_refused_where_one_kernel_must_find_all():
    axes = axes_of(MATRIX, needs_one_kernel=True)
    columns = axes.elements.coordinates["J"]
    with pytest.raises(NotDirectError, match="a kernel of its own"):
        occurring(axes, coordinate_along(axes, "J"), columns.length)


def test_a_table_is_as_large_as_the_elements_allow():
    small, large = axes_of(MATRIX), axes_of(sparse.csr_array(np.ones((100, 100))))
    require_table(small, MIN_TABLE)
    require_table(large, TABLE_FACTOR * 10_000)
    for axes, size in ((small, MIN_TABLE + 1), (large, TABLE_FACTOR * 10_000 + 1)):
        with pytest.raises(NotDirectError, match="too large"):
            require_table(axes, size)
