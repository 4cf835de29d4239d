"""Operators check a tensor that borrows its arrays at each call, as they check a SciPy matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_ir.errors import FormatError
from gossamer_testkit.matrices.oracles import tolerance


def matrix_and_tensor():
    matrix = sparse.random_array(
        (20, 15), density=0.2, format="csr", rng=np.random.default_rng(2), dtype=np.float64
    )
    return matrix, gs.from_scipy(matrix, copy=False)


CALLS = {
    "spmm": lambda A: gs.spmm(A, np.ones((15, 3))),
    "spmv": lambda A: gs.spmv(A, np.ones(15)),
    "matmul": lambda A: A @ np.ones((15, 3)),
    "rmatmul": lambda A: np.ones((3, 20)) @ A,
    "sddmm": lambda A: gs.sddmm(A, np.ones((20, 4)), np.ones((15, 4))),
    "attention": lambda A: gs.attention(A, np.ones((20, 4)), np.ones((15, 4)), np.ones((15, 4))),
    "heads": lambda A: gs.attention(
        A, np.ones((2, 20, 4)), np.ones((2, 15, 4)), np.ones((2, 15, 4))
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("calls_before", [0, 3])
def test_a_structure_that_was_damaged_is_refused_at_the_next_call(name, calls_before):
    matrix, tensor = matrix_and_tensor()
    expected = np.asarray(CALLS[name](gs.from_scipy(matrix)))
    for _ in range(calls_before):
        np.testing.assert_array_equal(np.asarray(CALLS[name](tensor)), expected)
    matrix.indices[0] = 10**9
    with pytest.raises(FormatError, match="is 1000000000"):
        CALLS[name](tensor)


def test_values_may_change_between_calls():
    matrix, tensor = matrix_and_tensor()
    before = tensor @ np.ones(15)
    matrix.data[:] *= 2
    np.testing.assert_array_equal(tensor @ np.ones(15), 2 * before)


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr"])
def test_a_borrowed_tensor_in_another_format_is_converted_and_checked(kind):
    matrix, _ = matrix_and_tensor()
    source = matrix.asformat(kind)
    tensor = gs.from_scipy(source, format="same", copy=False)
    np.testing.assert_allclose(
        tensor @ np.ones(15), matrix @ np.ones(15), rtol=tolerance(2 * 15, "float64")
    )
    index = source.coords[0] if kind == "coo" else source.indices
    index[0] = 10**9
    with pytest.raises(FormatError, match="is 1000000000"):
        tensor @ np.ones(15)
