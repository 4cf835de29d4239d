"""Orders of rows by communities, against label propagation in Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import community_order
from gossamer_formats.reordering.row_communities import ROUNDS
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import run


def interpreted(module):
    return lambda **arguments: run(module, arguments)


def order_of(matrix):
    return community_order(matrix.shape, matrix.indptr, matrix.indices, compile=interpreted)


def propagated(matrix):
    """The rows sorted by label: that which most columns of a row have, the least one of several."""
    labels = [*range(matrix.shape[0])]
    for _ in range(ROUNDS):
        for row in range(matrix.shape[0]):
            columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
            counts = Counter(labels[column] for column in columns)
            if counts:
                labels[row] = min(counts, key=lambda label: (-counts[label], label))
    return sorted(range(len(labels)), key=labels.__getitem__)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("density", [0.02, 0.1, 0.5])
def test_rows_are_in_the_order_of_their_labels(density, index):
    matrix = sparse.random_array((40, 40), density=density, format="csr", rng=int(100 * density))
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    assert order_of(matrix).tolist() == propagated(matrix)


def test_rows_of_a_community_are_together():
    mixed = np.random.default_rng(0).permutation(60)
    blocks = sparse.block_diag([np.ones((15, 15))] * 4, format="csr")
    order = order_of(blocks[mixed][:, mixed])
    assert np.array_equal(np.sort(order), np.arange(60))
    communities = mixed[order] // 15
    assert np.count_nonzero(np.diff(communities)) == 3


@pytest.mark.parametrize("size", [0, 1, 5])
def test_matrices_without_elements_keep_their_order(size):
    assert order_of(sparse.csr_array((size, size))).tolist() == [*range(size)]


def test_other_matrices_have_no_communities():
    with pytest.raises(ArgumentError, match=r"3 rows and 4 columns") as caught:
        order_of(sparse.csr_array((3, 4)))
    assert caught.value.code == "format.order.shape"
