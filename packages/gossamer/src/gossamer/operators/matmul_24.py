"""N:M matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import dense_operand, output_array
from gossamer.operator_calls.operands.n_m_matrix import (
    NMMatrix,
    n_m_matrix,
    require_n_m,
    required_array,
    required_operands,
    unchanging_tensor,
)
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operators.spmm import spmm
from gossamer.targets.parse_target import DEFAULT_TARGET, is_default_target
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import VALUE_DTYPES, MemoKey
from gossamer_ir.core.dtypes import ROUNDED_OPERANDS, SUM_DTYPES
from gossamer_ir.interchange.records import Decision, Target
from gossamer_machine import Machine
from gossamer_machine.intrinsics.block_products import factor_text
from gossamer_machine.intrinsics.float8_operands import FLOAT8_OPERANDS
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, n_m_operands
from gossamer_machine.schedule_policy.n_m_tiles import ProductSizes
from gossamer_tune.internal_api import (
    LIBRARY_DTYPES,
    FormChoice,
    ProductForm,
    block_size,
    choose_cpu_form,
    choose_grid_form,
)

_SCRIPT = """\
@T.prim_func
def matmul_24(
    a: T.handle,
    indices: T.handle,
    b: T.handle,
    c: T.handle,
    m: T.int64,
    groups: T.int64,
    feat_size: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 2, "global_symbol": "matmul_24", "tir.noalias": True}})
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed(groups, parent=I)
    J = T.sp.compressed_fixed(G, ({units}, {slots}), indices, "uint8", padded=False)
{pairs}\
    J_detach = T.sp.dense_fixed(groups * {group})
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, G, J{pair_axis}), "{stored}")
    B = T.sp.match_buffer(b, (J_detach, K), "{stored}")
    C = T.sp.match_buffer(c, (I, K), "float32")
{facts}\
    with T.sp.iteration([I, G, J{pair_axis}, K], "{kinds}", "matmul_24") as [i, g, j{pair}, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + {left} * {right}
"""


def _script(operands: str) -> str:
    """Return the script for operands of a dtype or a precision: with two slots of four columns, one of two,
    or two of four pairs of columns."""
    read = n_m_operands(operands)
    is_paired = read.unit_columns > 1
    row = f"g * {read.units} + j"
    factors = f"A[i, g, j{', p' * is_paired}]", f"B[{f'({row}) * 2 + p' if is_paired else row}, k]"
    # Integers are narrowed with the module (`module_of`).
    has_text = operands in (*ROUNDED_OPERANDS, *FLOAT8_OPERANDS)
    left, right = (factor_text(factor, operands) if has_text else factor for factor in factors)
    return _SCRIPT.format(
        stored=read.stored_as if read.decoded_as else "float32",
        units=read.units,
        slots=read.slots,
        group=read.group,
        pairs="    P = T.sp.dense_fixed(2, parent=J)\n" * is_paired,
        pair_axis=", P" * is_paired,
        pair=", p" * is_paired,
        facts="" if read.limits is None else _facts(*read.limits),
        kinds="SRRRS" if is_paired else "SRRS",
        left=left,
        right=right,
    )


def _facts(least: int, most: int) -> str:
    return "".join(f"    T.assume(in_range({name}, {least}, {most + 1}))\n" for name in "AB")


SCRIPT = _script("float32")

PROGRAM = OperatorProgram(
    "matmul_24",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.matmul_24",
    buffers=("A", "B", "C"),
    features="feat_size",
    special=tuple(
        (
            name,
            OperatorProgram(
                "matmul_24",
                _script(name),
                # The dtypes of operands that are decoded are those of the script.
                buffers=() if special.decoded_as else ("A", "B", "C"),
                features="feat_size",
            ),
        )
        for name, special in SPECIAL_OPERANDS.items()
    ),
)

_DENSE = MemoKey[Array]("the matrix as a dense array for products")
_CSR = MemoKey[SparseTensor]("the matrix in CSR for products")
_BLOCKS = MemoKey[SparseTensor]("the matrix in dense blocks for products")


def checked_operands(A: Any, B: Array, dtype: str | None = None) -> Operands[NMMatrix]:
    """Return the checked operands of `matmul_24`."""
    matrix = n_m_matrix(A, dtype)
    dense = dense_operand("B", B, dtype=matrix.dtype, shape=(matrix.columns, None))
    rows, features = matrix.rows, int(dense.shape[1])
    padded = _padded_rows(dense, matrix.groups * n_m_operands(matrix.operands).group)
    sums = n_m_operands(matrix.operands).sums
    return Operands(matrix, {"b": padded}, "c", (rows, features), matrix.dtype, features, sums)


def _decide(dtype: str, sizes: Mapping[str, int], target: str | Target) -> Decision | None:
    """Return how the product of a tensor is computed for a target."""
    groups, rows, features = (sizes.get(name) for name in ("groups", "m", "feat_size"))
    columns = None if groups is None else n_m_operands(dtype).group * groups
    machine = machine_for(target)
    if machine.grid is not None:
        all_sizes = None
        if rows is not None and columns is not None and features is not None:
            all_sizes = ProductSizes(rows, columns, features)
        return _grid_choice(dtype, all_sizes, machine=machine).decision
    if not is_default_target(target):
        return None
    return choose_cpu_form(
        dtype, columns=columns, features=features, is_tensor=True, machine=machine
    ).decision


@operator(PROGRAM, checked_operands, decide=_decide)
def matmul_24(
    A: Any,
    B: Array,
    dtype: str | None = None,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return A @ B (m by k) for a 2:4 matrix A (m by n) and a dense matrix B (n by k).

    Of each four consecutive columns, a row of A has at most two nonzeros. A is a dense array, or a
    `SparseTensor` or SciPy matrix in any format; a tensor of `prune(A, "2:4")` is compressed once, all others
    at each call. Nothing is dropped: `prune` is a call of its own. A and B are both float16, float32,
    float64, int8 or uint8, or A is a tensor of bfloat16 and B has the bits of bfloat16, as uint16. Products
    of float16 and bfloat16 are added in float32, and those of int8 and uint8 in int32, which wraps; that is
    the dtype of the result. A zero of A is a factor of some products, and of others not: where B is infinite
    or NaN, the result is unspecified.

    `dtype` is the dtype in which products are computed, by default that of A. Others have patterns of their
    own, which A must have:

    * "tfloat32", for float32: both factors are rounded to TF32, and products are added in float32. Of each
      two columns, a row has at most one nonzero (1:2).
    * "float8_e4m3" and "float8_e5m2", for uint8, the bits of the floats. Their products are added in float32;
      a row has at most two of four columns.
    * "int4", for int8 from -8 to 7, and "uint4", for uint8 up to 15. Of each four pairs of columns, a row
      has at most two with nonzeros (4:8).

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
    if is_default_target(target):
        result = _product_of_library(A, B, dtype, out=out)
        if result is not None:
            return result
    elif isinstance(A, SparseTensor) and isinstance(B, np.ndarray):
        stored = _tensor_in_blocks(A, B, dtype, target=target)
        if stored is not None:
            return spmm(stored, B, out=out, target=target)
    return matmul_24.run(checked_operands(A, B, dtype), out=out, target=target)


def _product_of_library(
    A: Any, B: Array, operand_dtype: str | None, *, out: Array | None
) -> Array | None:
    """Return the product by NumPy or in CSR; None if the kernel computes it."""
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
    form = _choice_here(dtype, columns, features, is_tensor=is_tensor).form
    if form == "kernel":
        return None
    inputs = (dense, *(matrix.memory if isinstance(matrix, NMMatrix) else (matrix,)))
    result, array = output_array(
        out, dtype=SUM_DTYPES[dtype], shape=(rows, features), inputs=inputs
    )
    _multiply(form, A if is_tensor else matrix, dense, out=array)
    return result


def _tensor_in_blocks(
    tensor: SparseTensor, dense: Array, operand_dtype: str | None, *, target: Any
) -> SparseTensor | None:
    """Return a tensor in dense blocks if their product is expected to be faster than that of the kernel for
    2:4. None also for operands whose numbers of dimensions are wrong: the other kernel reports the error."""
    machine = machine_for(target)
    if machine.grid is None or dense.ndim != 2 or tensor.ndim != 2:
        return None
    dtype = required_operands(operand_dtype, tensor.value_dtype)
    rows, columns = tensor.shape
    sizes = ProductSizes(rows, columns, dense.shape[1])
    form = _grid_choice(dtype, sizes, machine=machine).form
    block = None if form == "kernel" else block_size(dtype, sizes)
    if block is None:
        return None
    # A matrix without the pattern is refused, whatever the form of its product.
    n_m_matrix(tensor)
    return _BLOCKS.get(
        tensor,
        lambda stored: stored.asformat("bsr", block_rows=block.rows, block_columns=block.columns),
    )


@lru_cache(maxsize=256)
def _choice_here(dtype: str, columns: int, features: int, *, is_tensor: bool) -> FormChoice:
    """Return the form for the CPU of this machine."""
    machine = machine_for(DEFAULT_TARGET)
    return choose_cpu_form(
        dtype, columns=columns, features=features, is_tensor=is_tensor, machine=machine
    )


def _grid_choice(dtype: str, sizes: ProductSizes | None, *, machine: Machine) -> FormChoice:
    """Return the form for a tensor on a machine with grids of threads."""
    return choose_grid_form(
        dtype, sizes, is_tensor=True, machine=machine, block_dtypes=VALUE_DTYPES
    )


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


def _padded_rows(dense: Array, rows: int) -> Array:
    """Return an array with as many rows; those that are added are zeros."""
    if rows == dense.shape[0]:
        return dense
    padded = np.zeros((rows, dense.shape[1]), dense.dtype)
    padded[: dense.shape[0]] = dense
    return padded
