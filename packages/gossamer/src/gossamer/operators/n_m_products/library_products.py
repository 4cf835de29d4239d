"""Products with an N:M matrix that is made dense, by NumPy, or converted to CSR, by `spmm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.operands.dense_operands import dense_operand, output_array
from gossamer.operator_calls.operands.n_m_matrix import (
    NMMatrix,
    n_m_matrix,
    require_n_m,
    required_array,
    required_operands,
)
from gossamer.operators.n_m_products.forms import choose_form_here
from gossamer.operators.spmm import spmm
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_tune.internal_api import LIBRARY_DTYPES, ProductForm

_DENSE = MemoKey[Array]("the matrix as a dense array for products")
_CSR = MemoKey[SparseTensor]("the matrix in CSR for products")


def product_of_library(
    A: Any, B: Array, operand_dtype: str | None, *, out: Array | None
) -> Array | None:
    """Return the product on the CPU of this machine by NumPy or in CSR; None if the kernel computes it."""
    is_tensor = isinstance(A, SparseTensor)
    matrix: Any = A if is_tensor else required_array(A)
    dtype = required_operands(operand_dtype, A.value_dtype if is_tensor else matrix.dtype.name)
    if dtype not in LIBRARY_DTYPES:
        return None
    if is_tensor:
        matrix = n_m_matrix(A)
    else:
        require_n_m(matrix)
    rows, columns = matrix.shape
    dense = dense_operand("B", B, dtype=dtype, shape=(columns, None))
    # Kernels take arrays of a device, and no library does.
    if not isinstance(dense, np.ndarray):
        return None
    features = dense.shape[1]
    form = choose_form_here(dtype, columns, features, is_tensor=is_tensor).form
    if form == "kernel":
        return None
    inputs = (dense, *(matrix.memory if isinstance(matrix, NMMatrix) else (matrix,)))
    result, array = output_array(
        out, dtype=SUM_DTYPES[dtype], shape=(rows, features), inputs=inputs
    )
    _multiply(form, A if is_tensor else matrix, dense, out=array)
    return result


def _multiply(form: ProductForm, matrix: Any, dense: Array, *, out: Array) -> None:
    """Store the product of a matrix and a dense one, of which sums have the dtype of `out`. The copy of a
    tensor in another form is kept with it."""
    operand = dense.astype(out.dtype, copy=False)
    if form == "csr":
        stored = _CSR.get(matrix, lambda tensor: _in_csr(tensor, out.dtype))
        spmm(stored, operand, out=out)
        return
    if isinstance(matrix, SparseTensor):
        left = _DENSE.get(matrix, lambda tensor: tensor.toarray().astype(out.dtype, copy=False))
    else:
        left = matrix.astype(out.dtype, copy=False)
    np.matmul(left, operand, out=out)


def _in_csr(tensor: SparseTensor, dtype: np.dtype[Any]) -> SparseTensor:
    from scipy.sparse import csr_array

    return SparseTensor(csr_array(tensor.toarray().astype(dtype, copy=False)))
