"""N:M matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import dense_operand
from gossamer.operator_calls.operands.n_m_matrix import (
    N_M_PARAMETERS,
    NMMatrix,
    n_m_matrix,
    unchanging_tensor,
)
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operators.n_m_products.block_products import product_in_blocks
from gossamer.operators.n_m_products.forms import decide_form
from gossamer.operators.n_m_products.library_products import product_of_library
from gossamer.operators.n_m_products.scripts import n_m_script
from gossamer.targets.parse_target import is_default_target
from gossamer_formats import Array, SparseTensor
from gossamer_ir.interchange.records import Target
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, n_m_operands

SCRIPT = n_m_script("float32")

PROGRAM = OperatorProgram(
    "matmul_24",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.matmul_24",
    buffers=("A", "B", "C"),
    matrix=N_M_PARAMETERS,
    features="feat_size",
    special=tuple(
        (
            name,
            OperatorProgram(
                "matmul_24",
                n_m_script(name),
                # The dtypes of operands that are decoded are those of the script.
                buffers=() if special.decoded_as else ("A", "B", "C"),
                matrix=N_M_PARAMETERS,
                features="feat_size",
            ),
        )
        for name, special in SPECIAL_OPERANDS.items()
    ),
)


def checked_operands(A: Any, B: Array, dtype: str | None = None) -> Operands[NMMatrix]:
    """Return the checked operands of `matmul_24`."""
    matrix = n_m_matrix(A, dtype)
    dense = dense_operand("B", B, dtype=matrix.dtype, shape=(matrix.columns, None))
    rows, features = matrix.rows, int(dense.shape[1])
    padded = _padded_rows(dense, matrix.groups * n_m_operands(matrix.operands).group)
    sums = n_m_operands(matrix.operands).sums
    return Operands(matrix, {"b": padded}, "c", (rows, features), matrix.dtype, features, sums)


@operator(PROGRAM, checked_operands, decide=decide_form)
def matmul_24(
    A: Any,
    B: Array,
    dtype: str | None = None,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return A @ B (m by k) for a 2:4 matrix A (m by n) and a dense matrix B (n by k).

    A row of A has at most two nonzeros in each four consecutive columns. A is a dense array, or a
    `SparseTensor` or SciPy matrix in any format; a tensor of `prune(A, "2:4")` is compressed once, all others
    at each call. Nothing is dropped: `prune` is a call of its own. A and B are both float16, float32,
    float64, int8 or uint8, or A is a tensor of bfloat16 and B has the bits of bfloat16, as uint16. Products
    of float16 and bfloat16 are added in float32, and those of int8 and uint8 in int32, which wraps; that is
    the dtype of the result. A zero of A is a factor of some products, and of others not: where B is infinite
    or NaN, the result is unspecified.

    `dtype` is the dtype in which products are computed, by default that of A. Others have patterns of their
    own, which A must have:

    * "tfloat32", for float32: both factors are rounded to TF32, and products are added in float32. A row
      has at most one nonzero in each two columns (1:2).
    * "float8_e4m3" and "float8_e5m2", for uint8, the bits of the floats. Their products are added in float32;
      a row has at most two of four columns.
    * "int4", for int8 from -8 to 7, and "uint4", for uint8 up to 15. A row has at most two pairs
      with nonzeros in each four pairs of columns (4:8).

    On a target with sparse tensor cores for the dtype they multiply: those for int4 and uint4 from sm_80 to
    sm_89, those for float8 on sm_89 and sm_120. Tensors are multiplied in dense blocks where a model expects
    that to be faster (docs/n-m-sparsity.md). On the CPU of this machine (the default target), the product of
    NumPy, or that of `spmm`, is used where the kernel for 2:4 is slower: it is for integers and for a `dtype`
    of its own, and for targets that are named with options. `explain("matmul_24", target=...)` says what is
    chosen and why, for operands of other dtypes with `dtypes={"A": "float16", "B": "float16"}`, and for sizes
    with `specialize={"m": 4096, "groups": 1024, "feat_size": 64}`. `matmul_24.bind` always uses the kernel.

    Raises `FormatError` (`format.n_m`) that names the row and the columns of a group with more
    nonzeros, and `ArgumentError`: `operand.kind`, `operand.dtype`, `operand.shape`, `operand.range` (an
    element of A beyond the limits of `dtype`), `kernel.range` (one of B), and those of `out`, which is as for
    `spmm`.

    >>> import numpy as np, gossamer as gs
    >>> A = gs.prune(np.array([[1.0, 4.0, 2.0, 3.0], [5.0, 0.0, 0.0, 0.0]]), "2:4")
    >>> gs.matmul_24(A, np.ones((4, 2)))
    array([[7., 7.],
           [5., 5.]])
    >>> pairs = np.array([[0, 0, 7, -8, 0, 0, 0, 1]], np.int8)
    >>> gs.matmul_24(pairs, np.ones((8, 1), np.int8), "int4")
    array([[0]], dtype=int32)
    """
    if isinstance(A, SparseTensor):
        A = unchanging_tensor(A)
    if target is None or is_default_target(target):
        result = product_of_library(A, B, dtype, out=out)
    else:
        result = product_in_blocks(A, B, dtype, out=out, target=target)
    if result is not None:
        return result
    return matmul_24.run(checked_operands(A, B, dtype), out=out, target=target)


def _padded_rows(dense: Array, rows: int) -> Array:
    """Return an array with as many rows; those that are added are zeros."""
    if rows == dense.shape[0]:
        return dense
    padded = np.zeros((rows, dense.shape[1]), dense.dtype)
    padded[: dense.shape[0]] = dense
    return padded
