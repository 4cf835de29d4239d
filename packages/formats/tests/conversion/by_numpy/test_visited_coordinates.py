"""The rows and columns that a loop nest over a tensor visits, for formats of the library."""

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import SparseTensor
from gossamer_formats.conversion.by_numpy.visited_coordinates import visited_coordinates

MATRIX = sparse.csr_array(
    np.array([[0, 0, 0], [1, 0, 2], [0, 0, 0], [3, 0, 0], [0, 0, 0]], dtype=np.float64)
)
BLOCKS = {"block_rows": 2, "block_columns": 2}
ROWS = {
    ("csr", ()): ([0, 1, 2, 3, 4], True),
    ("ell", ()): ([0, 1, 2, 3, 4], True),
    ("dcsr", ()): ([1, 3], True),
    ("bsr", tuple(BLOCKS.items())): ([0, 1, 2, 3, 4], True),
    ("dbsr", tuple(BLOCKS.items())): ([0, 1, 2, 3], True),
    # Row 1 comes first in the window of all rows; the slice of rows 2 and 4 has no slots.
    ("sell", (("height", 2), ("sigma", 8))): ([0, 1, 3, 2], None),
    ("csc", ()): ([1, 3, 1], False),
    ("coo", ()): ([1, 1, 3], False),
}


@pytest.mark.parametrize(("format", "parameters"), ROWS)
def test_rows_are_visited_where_the_loops_over_them_run(format, parameters):
    expected, are_distinct = ROWS[format, parameters]
    tensor = SparseTensor(MATRIX).asformat(format, **dict(parameters))
    visited = visited_coordinates(tensor.storage, 0)
    if format == "sell":
        stored = [rows for rows in visited.coordinates.tolist() if rows in (1, 3)]
        assert sorted(stored) == [1, 3]
        assert len(set(visited.coordinates.tolist())) == visited.coordinates.size
        # Loops over the rows of a slice are below one over its slots.
        assert not visited.are_distinct
        return
    assert visited.coordinates.tolist() == expected
    assert visited.are_distinct is are_distinct


def test_a_row_that_is_stored_twice_is_not_distinct():
    twice = SparseTensor(MATRIX).asformat("ell_rows", width=1)
    visited = visited_coordinates(twice.storage, 0)
    assert visited.coordinates.tolist() == [1, 1, 3]
    assert not visited.are_distinct


@pytest.mark.parametrize(("width", "times"), [(1, 3), (2, 2), (3, 1), (8, 1)])
def test_rows_that_each_tile_of_columns_visits_are_not_distinct(width, times):
    """The coordinates are listed once, although the loop over tiles visits them several times."""
    tiled = SparseTensor(MATRIX).asformat("tiled_csr", tile_columns=width)
    visited = visited_coordinates(tiled.storage, 0)
    assert visited.coordinates.tolist() == [0, 1, 2, 3, 4]
    assert visited.are_distinct is (times == 1)


def test_columns_and_matrices_without_elements():
    columns = visited_coordinates(SparseTensor(MATRIX).asformat("csc").storage, 1)
    assert columns.coordinates.tolist() == [0, 1, 2]
    assert columns.are_distinct
    for shape in ((0, 3), (3, 0)):
        for format in ("csr", "csc", "coo", "dcsr", "sell"):
            empty = SparseTensor(sparse.csr_array(shape)).asformat(format)
            visited = visited_coordinates(empty.storage, 0)
            assert visited.coordinates.size in (0, shape[0])
