"""Programs and data shared by the tests of the passes."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

SPMM = """
@T.prim_func
def spmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int32, n: T.int32, k: T.int32, nnz: T.int32) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k_]:
        with T.init():
            C[i, k_] = 0.0
        C[i, k_] = C[i, k_] + A[i, j] * B[j, k_]
"""

SPMV = """
@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int32, n: T.int32, nnz: T.int32) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_detach,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""


@pytest.fixture
def spmm():
    """CSR SpMM at the coordinate stage."""
    return parse_module(SPMM)


@pytest.fixture
def spmv():
    """CSR SpMV at the coordinate stage."""
    return parse_module(SPMV)


DENSE = {
    "empty rows at both ends": [[0, 0, 0], [1, 0, 2], [0, 0, 0], [0, 3, 0], [0, 0, 0]],
    "no nonzeros": [[0, 0], [0, 0]],
    "one dense row": [[0, 0, 0, 0], [1, 2, 3, 4]],
    "one dense column": [[1, 0], [2, 0], [3, 0]],
    "wide": [[(7 * c) % 5 for c in range(40)], [0] * 40, [(3 * c) % 4 for c in range(40)]],
}


def csr(dense):
    """indptr, indices and data of the nonzeros of a small matrix."""
    dense = np.asarray(dense, dtype=np.float32)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    return indptr.astype(np.int32), columns.astype(np.int32), dense[rows, columns]


@pytest.fixture(params=DENSE, ids=lambda name: name.replace(" ", "_"))
def matrix(request):
    """A small integer-valued matrix with some difficult property."""
    return np.asarray(DENSE[request.param], dtype=np.float32)


@pytest.fixture
def run_spmm():
    """Runs an SpMM module of any stage with the interpreter; returns the output and the oracle."""

    def apply(module, dense, features=3):
        indptr, indices, data = csr(dense)
        rows, columns = dense.shape
        b = np.arange(columns * features, dtype=np.float32).reshape(columns, features) % 7 - 2
        c = np.full((rows, features), np.nan, dtype=np.float32)
        arguments = {"a": data, "b": b, "c": c, "indptr": indptr, "indices": indices,
                     "m": rows, "n": columns, "k": features, "nnz": len(data)}  # fmt: skip
        params = {param.name for param in module.functions[0].params}
        run(module, {name: value for name, value in arguments.items() if name in params})
        return c, dense.astype(np.float64) @ b.astype(np.float64)

    return apply


@pytest.fixture
def run_spmv():
    """Runs an SpMV module of any stage with the interpreter; returns the output and the oracle."""

    def apply(module, dense):
        indptr, indices, data = csr(dense)
        rows, columns = dense.shape
        x = np.arange(columns, dtype=np.float32) % 5 - 2
        y = np.full(rows, np.nan, dtype=np.float32)
        run(module, {"a": data, "x": x, "y": y, "indptr": indptr, "indices": indices,
                     "m": rows, "n": columns, "nnz": len(data)})  # fmt: skip
        return y, dense.astype(np.float64) @ x.astype(np.float64)

    return apply


@pytest.fixture
def csr_arrays():
    """The function `csr`: indptr, indices and data of a small matrix."""
    return csr
