"""Statistics of matrices: lengths of rows, and rows with the columns of the row before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_formats.stats import SAMPLED_ROWS, equal_rows


def rows_with_columns(*rows):
    indptr = np.cumsum([0, *map(len, rows)])
    return equal_rows(indptr, np.concatenate([[], *rows]).astype(np.int64))


FEW = {
    "no rows": ((), 0),
    "one row": (([1, 2],), 0),
    "empty rows": (([], [], []), 0),
    "three rows": (([1, 2], [1, 2], [1, 2]), 2),
    "another first column": (([1, 2, 3], [0, 2, 3]), 0),
    "another column in the middle": (([1, 2, 4], [1, 3, 4]), 0),
    "another last column": (([1, 2, 3], [1, 2, 4]), 0),
    "another length": (([1, 2, 3], [1, 2], [1, 2]), 1),
    "rows of one element at the end": (([3], [], [7], [7]), 1),
}


@pytest.mark.parametrize(("rows", "count"), FEW.values(), ids=FEW)
def test_equal_rows_of_small_matrices_are_counted(rows, count):
    assert rows_with_columns(*rows) == count


@pytest.mark.parametrize("unknowns", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("nodes", [24 * SAMPLED_ROWS, 10_007])
def test_the_share_of_equal_rows_is_estimated(unknowns, nodes):
    """A matrix of finite elements, with `unknowns` rows for each node. Samples at equal distances could meet
    the same row of each node."""
    mesh = sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(nodes, nodes))
    matrix = sparse.csr_array(sparse.kron(mesh, np.ones((unknowns, unknowns)), format="csr"))
    share = from_scipy(matrix).stats.equal_rows / matrix.shape[0]
    assert share == pytest.approx((unknowns - 1) / unknowns, abs=0.04)
