"""SpMV on tensors of torch."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError


def test_the_product_of_a_vector(arrays):
    A, x = gt.SparseMatrix(*arrays, torch.randn(5), shape=(3, 4)), torch.randn(4)
    torch.testing.assert_close(gt.spmv(A, x), A.to_dense() @ x)
    torch.testing.assert_close(A @ x, A.to_dense() @ x)


@pytest.mark.parametrize("shape", [(3,), (4, 1)])
def test_what_is_not_a_vector_of_the_columns_is_refused(arrays, shape):
    A = gt.SparseMatrix(*arrays, shape=(3, 4))
    with pytest.raises(ArgumentError, match="shape") as caught:
        gt.spmv(A, torch.ones(shape))
    assert caught.value.code == "operand.shape"
