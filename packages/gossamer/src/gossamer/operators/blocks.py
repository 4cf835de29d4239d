"""SciPy's matrices in blocks (BSR) times dense matrices, block by block: a way that `spmm` takes."""

from __future__ import annotations

from typing import Any

from gossamer.kernels import kernel_for
from gossamer.operators.operands import dense_operand, output
from gossamer.operators.operator import Operator, Variant
from gossamer.operators.plans import CHECKED
from gossamer_formats import Array
from gossamer_formats.scipy_matrices import borrow_blocks
from gossamer_ir.contracts import Target

SCRIPT = """\
@T.prim_func
def bsrmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    mb: T.int64,
    nb: T.int64,
    nnzb: T.int64,
    height: T.int64,
    width: T.int64,
    feat_size: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "bsrmm", "tir.noalias": True})
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), sorted=False, unique=False)
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(height)
    JI = T.sp.dense_fixed(width)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (JO_detach, JI, K), "float32")
    C = T.sp.match_buffer(c, (IO, II, K), "float32")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "bsrmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[jo, ji, k]
"""

OPERATOR = Operator("bsrmm", SCRIPT, buffers=("A", "B", "C"), features="feat_size")


def is_in_blocks(matrix: Any) -> bool:
    """Whether a matrix is one of SciPy's in blocks of more than one element."""
    return getattr(matrix, "format", "") == "bsr" and getattr(matrix, "blocksize", ()) != (1, 1)


def blocks_times_dense(
    A: Any,  # noqa: N803
    B: Array,  # noqa: N803
    *,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """A @ B for a SciPy matrix in blocks; operands and errors as for `spmm`."""
    indptr, indices, data = borrow_blocks(A)
    (rows, columns), (height, width), dtype = A.shape, data.shape[1:], data.dtype.name
    dense = dense_operand("B", B, dtype=dtype, shape=(columns, None))
    features = dense.shape[1]
    shape = (rows, features)
    inputs = (dense, indptr, indices, data)
    result, array = output(out, dtype=dtype, shape=shape, inputs=inputs)
    if array.size == 0 or data.size == 0:
        array[...] = 0
        return result
    sizes = (("height", height), ("width", width))
    variant = Variant(dtype, indptr.dtype.name, indices.dtype.name, features, sizes)
    kernel = kernel_for(OPERATOR, variant, stats=None, target=target).kernel
    blocked = {"b": dense.reshape(-1, width, features), "c": array.reshape(-1, height, features)}
    kernel.bind(verified=CHECKED, check=False, a=data, indptr=indptr, indices=indices, **blocked)()
    return result
