"""Sparse attention: softmax over the stored elements of each row of scale * Q @ K.T, times V."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec.structs import replace

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.csr_arrays import ArraysMatrix, arrays_matrix
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix, csr_pattern
from gossamer.operator_calls.operands.dense_operands import (
    NATIVE,
    dense_operand,
    number_operand,
    operand_dtype,
    output_array,
)
from gossamer.operator_calls.operands.device_operands import (
    common_device,
    device_view,
    require_contiguous,
    shape_of_array,
)
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operators.sddmm import sddmm
from gossamer.operators.spmm import spmm
from gossamer_formats import Array, SparseTensor
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

SCRIPT = """\
@T.prim_func
def attention(
    q: T.handle,
    k: T.handle,
    v: T.handle,
    scale: T.handle,
    out: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    feat_size: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "attention", "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    D = T.sp.dense_fixed(feat_size)
    One = T.sp.dense_fixed(1)
    Q = T.sp.match_buffer(q, (I, D), "float32")
    K = T.sp.match_buffer(k, (J_detach, D), "float32")
    V = T.sp.match_buffer(v, (J_detach, D), "float32")
    Scale = T.sp.match_buffer(scale, (One,), "float32")
    Out = T.sp.match_buffer(out, (I, D), "float32")
    P = T.sp.alloc_buffer((I, J), "float32")
    Most = T.sp.alloc_buffer((I,), "float32")
    Total = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J, D], "SSR", "scores") as [i, j, d]:
        with T.init():
            P[i, j] = 0.0
        P[i, j] = P[i, j] + Q[i, d] * Scale[0] * K[j, d]
    with T.sp.iteration([I, J], "SR", "most") as [i, j_most]:
        with T.init():
            Most[i] = T.float32("-inf")
        Most[i] = T.max(Most[i], P[i, j_most])
    with T.sp.iteration([I, J], "SS", "powers") as [i, j_power]:
        P[i, j_power] = T.exp(P[i, j_power] - Most[i])
    with T.sp.iteration([I, J], "SR", "total") as [i, j_total]:
        with T.init():
            Total[i] = 0.0
        Total[i] = Total[i] + P[i, j_total]
    with T.sp.iteration([I, J, D], "SRS", "values") as [i, j_value, d_value]:
        with T.init():
            Out[i, d_value] = 0.0
        Out[i, d_value] = Out[i, d_value] + P[i, j_value] * V[j_value, d_value]
    with T.sp.iteration([I, D], "SS", "quotients") as [i, d_quotient]:
        Out[i, d_quotient] = Out[i, d_quotient] / T.Select(Total[i] == 0.0, 1.0, Total[i])
"""

PROGRAM = OperatorProgram(
    "attention",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.attention",
    buffers=("Q", "K", "V", "Scale", "Out", "P", "Most", "Total"),
    features="feat_size",
    values=None,
)


_DTYPES = frozenset(NATIVE.values())


def _scale(scale: float | None, features: int | None, dtype: np.dtype[Any]) -> Array:
    """Return the factor of the scores as an array for the kernel."""
    if scale is None:
        scale = 1.0 / math.sqrt(features or 1)
    return number_operand("scale", scale, dtype, expected="a number or None")


def _arrays(
    Q: Array,
    K: Array,
    V: Array,
    scale: float | None = None,
) -> tuple[Array, ...]:
    """Return the dense operands as arrays for the kernel; none if Q has another dtype than kernels."""
    dtype = Q.dtype
    return (Q, K, V, _scale(scale, Q.shape[-1], dtype)) if dtype in _DTYPES else ()


def checked_operands(
    pattern: Any,
    Q: Array,
    K: Array,
    V: Array,
    scale: float | None = None,
) -> Operands[CsrMatrix | ArraysMatrix]:
    """Return the checked operands of `attention`."""
    query_dtype = operand_dtype("Q", Q)
    matrix = arrays_matrix(pattern, reads_values=False) or csr_pattern(pattern, dtype=query_dtype)
    (rows, columns), dtype = matrix.shape, query_dtype or matrix.dtype
    queries = dense_operand("Q", Q, dtype=dtype, shape=(rows, None))
    features = shape_of_array(queries)[1]
    shape = (columns, features)
    keys = dense_operand("K", K, dtype=dtype, shape=shape, like="'Q'")
    values = dense_operand("V", V, dtype=dtype, shape=shape, like="'Q'")
    dense = {"q": queries, "k": keys, "v": values, "scale": _scale(scale, features, NATIVE[dtype])}
    return Operands(matrix, dense, "out", (rows, features), dtype, features)


@operator(PROGRAM, checked_operands, adapt=_arrays)
def attention(
    pattern: Any,
    Q: Array,
    K: Array,
    V: Array,
    scale: float | None = None,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return softmax(scale * Q @ K.T) @ V for each head; the softmax of a row is over the elements that the
    pattern stores.

    Q is m by d for the m rows of the pattern, K and V are n by d for its n columns; all are float32 or all
    float64. They may have further dimensions in front, such as batches and heads, which are the same for
    all three and for the result. `scale` is 1 / sqrt(d) by default. The values of the pattern are ignored,
    and may be bools or integers, too; explicit zeros count, and duplicates count as often as they are
    stored. The pattern and `out` are as for `spmm`, also on a device, where each head is a call. On CPUs rows
    are fused, so the temporary memory of a thread
    is one number for each element of the longest of its rows. In float32, a pattern with rows of more than
    2**24 elements takes a number for each of all its elements.

    A row without stored elements gives zeros. A score of -inf has the weight 0; a row whose scores are all
    -inf, or contain inf or NaN, is NaN, as softmax is. Weights are divided by their sum at the end: a sum of
    weights times V that overflows is inf.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> pattern = scipy.sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32))
    >>> Q, K, V = np.zeros((3, 2)), np.zeros((3, 2)), np.array([[2.0, 4.0], [4.0, 0.0], [5.0, 6.0]])
    >>> gs.attention(pattern, Q, K, V)
    array([[3., 2.],
           [5., 6.],
           [0., 0.]])
    """
    if len(_shape(Q)) > 2:
        return _compute_by_heads(pattern, (Q, K, V), scale, out=out, target=target)
    checked = checked_operands(pattern, Q, K, V, scale)
    # The fused kernel sums a row at once, which loses terms of rows this long.
    matrix = checked.matrix
    if isinstance(matrix, CsrMatrix) and matrix.has_long_rows(checked.dtype):
        return _compute_in_blocks(matrix, checked, out=out, target=target)
    return attention.run(checked, out=out, target=target)


def _compute_in_blocks(
    matrix: CsrMatrix,
    checked: Operands[CsrMatrix | ArraysMatrix],
    *,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return the result for rows that are too long for one sum: by `sddmm`, and by `spmm`, which adds blocks
    of rows. It takes temporary memory for each stored element."""
    queries, keys, values, scale = checked.dense.values()
    dtype, features = checked.dtype, checked.features
    result, array = output_array(out, dtype=dtype, shape=checked.shape, inputs=checked.inputs)
    left = {"x": queries * scale, "y": keys}
    sampled = Operands(matrix, left, "out", (matrix.value_count,), dtype, features)
    scores = sddmm.run(sampled, out=None, target=target)
    offsets = matrix.arrays["indptr"]
    lengths = np.diff(offsets)
    # Rows with elements, because `reduceat` has no value for an empty range.
    rows = np.flatnonzero(lengths)
    starts = offsets[rows]
    with np.errstate(invalid="ignore", over="ignore"):
        # The largest score of a row becomes 0, so that no power overflows.
        scores -= np.repeat(np.maximum.reduceat(scores, starts), lengths[rows])
        weights = np.exp(scores, out=scores)
        totals = np.add.reduceat(weights, starts, dtype=np.float64)
        storage = matrix.storage
        weighted = storage._replace(arrays={**storage.arrays, "data": weights})
        product = Operands(
            replace(matrix, storage=weighted), {"b": values}, "c", checked.shape, dtype, features
        )
        spmm.run(product, out=array, target=target)
        array[rows] /= totals[:, np.newaxis]
    return result


def _tensor(pattern: Any, Q: Array) -> SparseTensor:
    """Return the pattern as a tensor, which is checked only once for all heads."""
    return SparseTensor.from_checked(csr_pattern(pattern, dtype=operand_dtype("Q", Q)).storage)


def _shape(array: Any) -> tuple[int, ...]:
    """Return the shape of an array of NumPy or of a device; an empty one for anything else, which is refused
    later."""
    if isinstance(array, np.ndarray):
        shape: tuple[int, ...] = array.shape
        return shape
    view = device_view("the array", array)
    return () if view is None else view.shape


def _compute_by_heads(
    pattern: Any,
    dense: tuple[Array, Array, Array],
    scale: float | None,
    *,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return the results of all heads, whose numbers are the first dimensions of the dense operands."""
    _require_same_heads(dense)
    if not isinstance(dense[0], np.ndarray):
        return _compute_heads_on_device(pattern, dense, scale, out=out, target=target)
    heads = dense[0].shape[:-2]
    matrix = pattern if isinstance(pattern, SparseTensor) else _tensor(pattern, dense[0])
    shape = (*heads, matrix.shape[0], dense[0].shape[-1])
    dtype = operand_dtype("Q", dense[0])
    assert dtype is not None, "operands of several heads are arrays"
    # One head is checked before `out` is written: its errors are those of all.
    result, array = output_array(out, dtype=dtype, shape=shape, inputs=dense)
    for head in np.ndindex(heads):
        q, k, v = (operand[head] for operand in dense)
        attention(matrix, q, k, v, scale, out=array[head], target=target)
    return result


def _require_same_heads(dense: tuple[Array, Array, Array]) -> None:
    heads = _shape(dense[0])[:-2]
    for name, array in zip("KV", dense[1:], strict=True):
        shape = _shape(array)
        if len(shape) != len(heads) + 2 or shape[:-2] != heads:
            raise ArgumentError(
                "operand.heads",
                f"'{name}' has the shape {shape or np.shape(array)}; expected {heads} before its last two "
                "dimensions.",
                hint="Q, K and V have the same heads and batches.",
            )


def _compute_heads_on_device(
    pattern: Any,
    dense: tuple[Any, Any, Any],
    scale: float | None,
    *,
    out: Any,
    target: str | Target | None,
) -> Any:
    """Return the results of all heads of arrays of a device: one call for each, which does not wait."""
    # Imported late: most arrays are on the host.
    from gossamer.operator_calls.binding.bind_on_device import output_on_device
    from gossamer_backend.internal_api import subarray

    arrays = {name: [array] for name, array in zip("QKV", dense, strict=True)}
    device = common_device(arrays if out is None else {**arrays, "out": [out]})
    for name, array in zip("QKV", dense, strict=True):
        view = device_view(name, array)
        assert view is not None, "arrays of several devices were refused"
        require_contiguous(name, view)
    *heads, rows, features = _shape(dense[0])
    dtype = operand_dtype("Q", dense[0])
    assert dtype is not None, "operands of several heads are arrays"
    shape = (*heads, rows, features)
    result = output_on_device(out, dtype=dtype, shape=shape, device=device, target=target)
    for head in np.ndindex(*heads):
        q, k, v, head_result = (subarray(array, head) for array in (*dense, result))
        attention(pattern, q, k, v, scale, out=head_result, target=target)
    return result
