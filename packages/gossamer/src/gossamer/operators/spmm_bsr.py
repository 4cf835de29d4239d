"""Matrices in whole blocks (BSR) times dense matrices, block by block: a variant of `spmm`."""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer.operator_calls.kernels import KernelRequest, default_check
from gossamer.operator_calls.operands.csr_operands import dense_operand
from gossamer.operator_calls.operands.matrices import CHECKED
from gossamer.operator_calls.program import OperatorProgram, Variant
from gossamer_formats import Array, SparseTensor, check_storage
from gossamer_formats.conversion.recognized_formats import is_format
from gossamer_formats.scipy_matrices.csr_of_scipy import borrow_blocks

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

PROGRAM = OperatorProgram("bsrmm", SCRIPT, buffers=("A", "B", "C"), features="feat_size")


def is_in_blocks(matrix: Any) -> bool:
    """Return whether a matrix of SciPy, or a tensor, is in blocks of more than one element. The last blocks
    of a tensor may extend beyond it; then it is not multiplied in blocks."""
    if not isinstance(matrix, SparseTensor):
        return getattr(matrix, "format", "") == "bsr" and getattr(matrix, "blocksize", ()) != (1, 1)
    if not is_format(matrix.description, "bsr"):
        return False
    block = block_size(matrix)
    is_whole = not any(length % size for length, size in zip(matrix.shape, block, strict=True))
    return is_whole and block != (1, 1)


def block_size(tensor: SparseTensor) -> tuple[int, int]:
    """Return the rows and the columns of the blocks of a tensor in BSR."""
    return tensor.sizes["block_rows"], tensor.sizes["block_columns"]


class BlockOperands(NamedTuple):
    """The checked operands of one product: the arrays of the matrix (`data` has the blocks), the dense
    matrix, and the shape and the dtype of the result."""

    indptr: Array
    indices: Array
    data: Array
    right: Array
    shape: tuple[int, int]
    dtype: str

    @property
    def dense(self) -> dict[str, Array]:
        """The dense operand by parameter."""
        return {"b": self.right}

    @property
    def output(self) -> str:
        """The parameter of the result."""
        return "c"

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        return (self.right, self.indptr, self.indices, self.data)

    @property
    def products(self) -> int:
        """The number of products that the kernel computes."""
        return self.data.size * self.shape[1]

    @property
    def is_zero(self) -> bool:
        """True if there are no blocks, so that the result is zero."""
        return self.data.size == 0

    @property
    def plan_key(self) -> None:
        """None: calls with blocks have no plans."""
        return None

    @property
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """No parameters, as there are no plans."""
        return (), ()

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameters for arrays whose contents were checked when the operands were."""
        return CHECKED

    def request(self, program: OperatorProgram) -> KernelRequest:
        """Return the request for the kernel of a program over blocks of this size."""
        _, height, width = self.data.shape
        sizes = (("height", height), ("width", width))
        indptr, indices = self.indptr.dtype.name, self.indices.dtype.name
        return KernelRequest(program, Variant(self.dtype, indptr, indices, self.shape[1], sizes))

    def arguments(self, program: OperatorProgram, result: Array) -> dict[str, Array]:
        """Return all arrays of the call by parameter of the kernel."""
        _, height, width = self.data.shape
        (rows, features), columns = self.shape, len(self.right)
        return {
            program.values: self.data,
            "b": self.right.reshape(columns // width, width, features),
            "c": result.reshape(rows // height, height, features),
            "indptr": self.indptr,
            "indices": self.indices,
        }

    def cut_long_rows(self) -> None:
        """None: rows of blocks are never cut."""
        return


def operands_in_blocks(A: Any, B: Array) -> BlockOperands:  # noqa: N803
    """Return the checked operands of `spmm` for a matrix in blocks."""
    indptr, indices, data = _blocks(A)
    rows, columns = A.shape
    dtype = data.dtype.name
    dense = dense_operand("B", B, dtype=dtype, shape=(columns, None))
    return BlockOperands(indptr, indices, data, dense, (rows, dense.shape[1]), dtype)


def _blocks(matrix: Any) -> tuple[Array, Array, Array]:
    """Return row pointer, block columns and values (blocks by height by width) of a matrix in blocks."""
    if not isinstance(matrix, SparseTensor):
        return borrow_blocks(matrix)
    if matrix.is_borrowed:
        # The caller can write to its arrays.
        check_storage(matrix.storage, check=default_check())
    arrays = matrix.arrays
    return arrays["indptr"], arrays["indices"], arrays["data"].reshape(-1, *block_size(matrix))
