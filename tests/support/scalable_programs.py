"""SpMV, SpMM and SDDMM over CSR with schedules in scalable vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder

_HEADER = """
@T.prim_func
def program(a: T.handle, b: T.handle, d: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
            m: T.int64, n: T.int64, features: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(a, (I, J), "float32")
"""
_SPMV = """
    B = T.sp.match_buffer(b, (J_detach,), "float32")
    D = T.sp.match_buffer(d, (K,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j] * B[j]
"""
_SPMM = """
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    D = T.sp.match_buffer(d, (K,), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
_SDDMM = """
    B = T.sp.match_buffer(b, (I, K), "float32")
    D = T.sp.match_buffer(d, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            C[i, j] = 0.0
        C[i, j] = C[i, j] + A[i, j] * B[i, k] * D[j, k]
"""
_BY_ROWS: Any = {"weight": "T.int64(J_indptr[i]) + i", "grain": 8}


def _loops(body: str) -> Module:
    return lower_buffers(lower_iterations(parse_module(_HEADER + body)))


def spmv(lanes: str) -> ScheduleBuilder:
    """The elements of a row in lanes."""
    return (
        ScheduleBuilder(_loops(_SPMV))
        .cache_write("spmv", buffer="C_data", scope="local")
        .reverse_compute_at("spmv_C_data_local", loop="i")
        .decompose_reduction("spmv", loop="j")
        .split("j", factors=(None, lanes))
        .vectorize("j_1")
        .parallel("i", **_BY_ROWS)
    )


def spmm(lanes: str) -> ScheduleBuilder:
    """Features in lanes, and a result of one vector in a local buffer."""
    return (
        ScheduleBuilder(_loops(_SPMM))
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


def sddmm(lanes: str) -> ScheduleBuilder:
    """Features in lanes, combined for each element."""
    return (
        ScheduleBuilder(_loops(_SDDMM))
        .cache_write("sddmm", buffer="C_data", scope="local")
        .reverse_compute_at("sddmm_C_data_local", loop="j")
        .decompose_reduction("sddmm", loop="k")
        .split("k", factors=(None, lanes))
        .vectorize("k_1")
        .parallel("i", **_BY_ROWS)
    )


BUILDERS = {"spmv": spmv, "spmm": spmm, "sddmm": sddmm}


def _integers(random: np.random.Generator, *shape: int) -> Any:
    """Small integers, whose sums are exact."""
    return random.integers(-3, 4, shape).astype(np.float32)


def operands(name: str, size: int) -> tuple[dict[str, Any], np.ndarray]:
    """The arguments and the result of a program with `size` features, or with rows of `size` elements for
    SpMV; rows 0, 3 and 6 are empty, and row 1 is dense."""
    features = 0 if name == "spmv" else size
    columns = size if name == "spmv" else 9
    random = np.random.default_rng(size)
    dense = _integers(random, 7, columns) * (random.random((7, columns)) < 0.5)
    dense[1], dense[[0, 3, 6]] = 2, 0
    a = sparse.csr_array(dense)
    sizes = {"m": 7, "n": columns, "features": features, "nnz": a.nnz}
    b: Any = _integers(random, columns, features)
    d: Any = np.zeros(features, np.float32)
    if name == "spmv":
        b = _integers(random, columns)
    result: Any = a @ b
    if name == "sddmm":
        b, d = (_integers(random, count, features) for count in (7, columns))
        rows, found = a.nonzero()
        result = a.data * np.einsum("ek,ek->e", b[rows], d[found])
    arrays = {"a": a.data, "b": b, "d": d, "indptr": a.indptr, "indices": a.indices}
    return {**arrays, **sizes, "c": np.full(result.shape, np.nan, np.float32)}, result
