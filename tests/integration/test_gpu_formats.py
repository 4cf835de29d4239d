"""Products compute with a format if the rules for their target schedule it, and else in CSR.

Rules for CPUs schedule formats that those for grids of threads do not: their kernels would run in one thread.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix
from gossamer.operator_calls.operands.stored_matrix import StoredMatrix

TARGET = "cuda-mma-sp:arch=sm_80,driver=interpreter"
BLOCKS = {"block_rows": 16, "block_columns": 16}
CASES = [
    ("spmv", "sell", {}, CsrMatrix),
    ("spmv", "sliced_dia", {}, CsrMatrix),
    ("spmv", "bsr", BLOCKS, CsrMatrix),
    ("spmm", "row_groups", {}, CsrMatrix),
    ("spmm", "bsr", BLOCKS, StoredMatrix),
]


@pytest.mark.parametrize(("name", "format", "options", "on_gpu"), CASES)
def test_the_target_decides_whether_a_product_computes_with_a_format(name, format, options, on_gpu):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((64, 48), density=0.2, format="csr", rng=rng, dtype=np.float32)
    matrix.data = rng.integers(-4, 5, matrix.nnz).astype(np.float32)
    tensor = gs.from_scipy(matrix).asformat(format, **options)
    dense = rng.integers(-4, 5, (48, 5)).astype(np.float32)
    operand = dense if name == "spmm" else dense[:, 0].copy()
    product = getattr(gs, name)
    assert type(product.checked_operands(tensor, operand).matrix) is StoredMatrix
    assert type(product.checked_operands(tensor, operand, target=TARGET).matrix) is on_gpu
    for _ in range(2):
        for target in (None, TARGET):
            assert np.array_equal(product(tensor, operand, target=target), matrix @ operand)
    result = np.zeros_like(matrix @ operand)
    product.bind(tensor, operand, out=result, target=TARGET)()
    assert np.array_equal(result, matrix @ operand)
