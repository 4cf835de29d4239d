"""Operators take tensors in any format; they are converted once."""

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import from_scipy
from gossamer_ir.errors import FormatError
from gossamer_testkit.matrices.oracles import sddmm, spmm, spmv, tolerance

PARAMETERS = {"bsr": {"block_rows": 2, "block_columns": 3}, "sell": {"height": 4}}


@pytest.mark.parametrize("name", ["bsr", "coo", "csc", "dia", "ell", "sell"])
def test_a_tensor_in_another_format_is_an_operand(name):
    rng = np.random.default_rng(7)
    matrix = sparse.random_array((20, 15), density=0.2, format="csr", rng=rng, dtype=np.float32)
    tensor = from_scipy(matrix).asformat(name, **PARAMETERS.get(name, {}))
    dense, vector = rng.random((15, 4), dtype=np.float32), rng.random(15, dtype=np.float32)
    left = rng.random((20, 3), dtype=np.float32)
    right = rng.random((15, 3), dtype=np.float32)
    rounding = tolerance(15, "float32")  # nothing is negative, so that no terms cancel
    np.testing.assert_allclose(gs.spmm(tensor, dense), spmm(matrix, dense), rtol=rounding)
    np.testing.assert_allclose(gs.spmv(tensor, vector), spmv(matrix, vector), rtol=rounding)
    np.testing.assert_allclose(tensor @ dense, spmm(matrix, dense), rtol=rounding)
    np.testing.assert_allclose(
        gs.sddmm(tensor, left, right), sddmm(matrix, left, right), rtol=rounding
    )
    assert tensor.tocsr() is tensor.tocsr()


def test_a_tensor_of_three_dimensions_is_refused():
    tensor = gs.from_arrays(
        "coo", (2, 2, 2), data=np.ones(1), **{f"indices_{n}": np.zeros(1, int) for n in range(3)}
    )
    with pytest.raises(FormatError) as caught:
        gs.spmm(tensor, np.ones((2, 2)))
    assert caught.value.code == "format.dimensions"
