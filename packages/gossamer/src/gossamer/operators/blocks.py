"""SciPy's matrices in blocks (BSR) times dense matrices, block by block: a variant of `spmm`."""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer.operators.kernels import kernel_for
from gossamer.operators.operands import dense_operand, output
from gossamer.operators.operator import Operator, Variant
from gossamer.operators.plans import CHECKED
from gossamer_backend import BoundCall
from gossamer_formats import Array
from gossamer_formats.io.scipy_matrices import borrow_blocks
from gossamer_ir.interchange.records import Target

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
    """Return whether a matrix is a SciPy matrix in blocks of more than one element."""
    return getattr(matrix, "format", "") == "bsr" and getattr(matrix, "blocksize", ()) != (1, 1)


class InBlocks(NamedTuple):
    """The checked operands of one product: the arrays of the matrix (`data` has the blocks), the dense
    matrix, and the shape of the result."""

    indptr: Array
    indices: Array
    data: Array
    dense: Array
    shape: tuple[int, int]

    @property
    def dtype(self) -> str:
        """The dtype of all values."""
        name: str = self.data.dtype.name
        return name

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        return (self.dense, self.indptr, self.indices, self.data)


def blocks_times_dense(
    A: Any,  # noqa: N803
    B: Array,  # noqa: N803
    *,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return A @ B for a SciPy matrix in blocks; operands and errors as for `spmm`."""
    found = operands_in_blocks(A, B)
    result, array = output(out, dtype=found.dtype, shape=found.shape, inputs=found.inputs)
    if array.size == 0 or found.data.size == 0:
        array[...] = 0
        return result
    bound_to_blocks(found, array, target=target)()
    return result


def operands_in_blocks(A: Any, B: Array) -> InBlocks:  # noqa: N803
    """Return the checked operands of `spmm` for a SciPy matrix in blocks."""
    indptr, indices, data = borrow_blocks(A)
    rows, columns = A.shape
    dense = dense_operand("B", B, dtype=data.dtype.name, shape=(columns, None))
    return InBlocks(indptr, indices, data, dense, (rows, dense.shape[1]))


def bound_to_blocks(
    found: InBlocks, result: Array, *, target: str | Target | None, check: bool = False
) -> BoundCall:
    """Return the kernel bound to these arrays; with `check` the index arrays are checked again."""
    _, height, width = found.data.shape
    (rows, features), columns = found.shape, len(found.dense)
    sizes = (("height", height), ("width", width))
    variant = Variant(
        found.dtype, found.indptr.dtype.name, found.indices.dtype.name, features, sizes
    )
    kernel = kernel_for(OPERATOR, variant, stats=None, target=target).kernel
    arrays = {
        "a": found.data,
        "b": found.dense.reshape(columns // width, width, features),
        "c": result.reshape(rows // height, height, features),
        "indptr": found.indptr,
        "indices": found.indices,
    }
    return kernel.bind(verified=CHECKED, check=check, **arrays)
