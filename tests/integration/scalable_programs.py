"""SpMV, SpMM and SDDMM over CSR in any dtype, with schedules in scalable vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder

_HEADER = """
@T.prim_func
def program(a: T.handle, b: T.handle, d: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
            m: T.int64, n: T.int64, features: T.int64, nnz: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "{index_dtype}", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(a, (I, J), "{dtype}")
"""
_SPMV = """
    B = T.sp.match_buffer(b, (J_detach,), "{dtype}")
    D = T.sp.match_buffer(d, (K,), "{dtype}")
    C = T.sp.match_buffer(c, (I,), "{dtype}")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            C[i] = {zero}
        C[i] = C[i] + A[i, j] * B[j]
"""
_SPMM = """
    B = T.sp.match_buffer(b, (J_detach, K), "{dtype}")
    D = T.sp.match_buffer(d, (K,), "{dtype}")
    C = T.sp.match_buffer(c, (I, K), "{dtype}")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:
        with T.init():
            C[i, k] = {zero}
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
_SDDMM = """
    B = T.sp.match_buffer(b, (I, K), "{dtype}")
    D = T.sp.match_buffer(d, (J_detach, K), "{dtype}")
    C = T.sp.match_buffer(c, (I, J), "{dtype}")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            C[i, j] = {zero}
        C[i, j] = C[i, j] + A[i, j] * B[i, k] * D[j, k]
"""
_BY_ROWS: Any = {"weight": "T.int64(J_indptr[i]) + i", "grain": 8}


def _loops(body: str, dtype: str, index_dtype: str) -> Module:
    zero = "0.0" if DType.parse(dtype).is_float else "0"
    text = (_HEADER + body).format(dtype=dtype, index_dtype=index_dtype, zero=zero)
    return lower_buffers(lower_iterations(parse_module(text)))


def spmv(lanes: str, dtype: str = "float32", index_dtype: str = "int32") -> ScheduleBuilder:
    """The elements of a row in lanes."""
    return (
        ScheduleBuilder(_loops(_SPMV, dtype, index_dtype))
        .cache_write("spmv", buffer="C_data", scope="local")
        .reverse_compute_at("spmv_C_data_local", loop="i")
        .decompose_reduction("spmv", loop="j")
        .split("j", factors=(None, lanes))
        .vectorize("j_1")
        .parallel("i", **_BY_ROWS)
    )


def grouped_spmv(lanes: str, dtype: str = "float32", index_dtype: str = "int32") -> ScheduleBuilder:
    """The elements of a row in groups of two vectors, and in masked vectors after these."""
    return (
        ScheduleBuilder(_loops(_SPMV, dtype, index_dtype))
        .cache_write("spmv", buffer="C_data", scope="local")
        .reverse_compute_at("spmv_C_data_local", loop="i")
        .decompose_reduction("spmv", loop="j")
        .split("j", factors=(None, 2, lanes))
        .vectorize("j_2", remainder="masked")
        .unroll("j_1")
        .parallel("i", **_BY_ROWS)
    )


def spmm(lanes: str, dtype: str = "float32", index_dtype: str = "int32") -> ScheduleBuilder:
    """Features in lanes, and a result of one vector in a local buffer."""
    return (
        ScheduleBuilder(_loops(_SPMM, dtype, index_dtype))
        .split("k", factors=(None, lanes))
        .reorder("i", "k_0", "j", "k_1")
        .cache_write("spmm", buffer="C_data", scope="local")
        .reverse_compute_at("spmm_C_data_local", loop="k_0")
        .decompose_reduction("spmm", loop="j")
        .vectorize("k_1")
        .vectorize("k_1_init")
        .vectorize("k_c")
        .parallel("i", **_BY_ROWS)
    )


def sddmm(lanes: str, dtype: str = "float32", index_dtype: str = "int32") -> ScheduleBuilder:
    """Features in lanes, combined for each element."""
    return (
        ScheduleBuilder(_loops(_SDDMM, dtype, index_dtype))
        .cache_write("sddmm", buffer="C_data", scope="local")
        .reverse_compute_at("sddmm_C_data_local", loop="j")
        .decompose_reduction("sddmm", loop="k")
        .split("k", factors=(None, lanes))
        .vectorize("k_1")
        .parallel("i", **_BY_ROWS)
    )


BUILDERS = {"spmv": spmv, "grouped spmv": grouped_spmv, "spmm": spmm, "sddmm": sddmm}


def operands(
    name: str, size: int, dtype: str = "float32", index_dtype: str = "int32"
) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """The arguments and the result of a program with `size` features, or with rows of `size` elements for
    SpMV; rows 0, 3 and 6 are empty, and row 1 is dense.

    The values are integers that are small enough for all sums to be exact in floats, and to be at most 256 in
    bfloat16. Integers wrap.
    """
    is_spmv = name.endswith("spmv")
    features = 0 if is_spmv else size
    columns = size if is_spmv else 9
    random = np.random.default_rng(size)
    largest = 1 if dtype in ("float16", "bfloat16") else 3

    def integers(*shape: int) -> Any:
        return random.integers(-largest, largest + 1, shape)

    dense = integers(7, columns) * (random.random((7, columns)) < 0.5)
    dense[1], dense[[0, 3, 6]] = largest, 0
    a = sparse.csr_array(dense)
    sizes = {"m": 7, "n": columns, "features": features, "nnz": a.nnz}
    b = integers(columns) if is_spmv else integers(columns, features)
    d: Any = np.zeros(features)
    result: Any = a @ b
    if name == "sddmm":
        b, d = integers(7, features), integers(columns, features)
        rows, columns_of_elements = a.nonzero()
        result = a.data * np.einsum("ek,ek->e", b[rows], d[columns_of_elements])
    arrays = {key: stored(value, dtype) for key, value in {"a": a.data, "b": b, "d": d}.items()}
    unset = np.full(result.shape, 99)
    indices = {"indptr": a.indptr.astype(index_dtype), "indices": a.indices.astype(index_dtype)}
    return {**arrays, **indices, **sizes, "c": stored(unset, dtype)}, stored(result, dtype)


def stored(integers: Any, dtype: str) -> Any:
    """Return integers as an array of a dtype; those of bfloat16 are the upper halves of float32."""
    if dtype == "bfloat16":
        return (integers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return integers.astype(dtype)
