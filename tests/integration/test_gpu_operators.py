"""Operators with the default schedules for GPUs, in the interpreter of PTX, against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp

import gossamer as gs

TARGET = "cuda-mma-sp:driver=interpreter"


def integers(*shape, dtype=np.float32):
    """Small integers, of which sums are exact."""
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)


def matrices(dtype=np.float32):
    dense = integers(37, 29, dtype=dtype) * (integers(37, 29) > 1)
    dense[5], dense[-1], dense[0] = 0, 0, 0
    dense[7], dense[:, 3] = 1, 2
    return {
        "mixed": sp.csr_array(dense),
        "no elements": sp.csr_array((4, 29), dtype=dtype),
        "no rows": sp.csr_array((0, 29), dtype=dtype),
        "one element": sp.csr_array(np.eye(1, 29, 28, dtype=dtype)),
    }


@pytest.mark.parametrize("name", matrices())
@pytest.mark.parametrize("features", [1, 5, 32, 40])
def test_products_with_a_matrix(name, features):
    matrix, dense = matrices()[name], integers(29, features)
    assert np.array_equal(gs.spmm(matrix, dense, target=TARGET), matrix @ dense)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", matrices())
def test_products_with_a_vector(name, dtype):
    matrix, vector = matrices(dtype)[name], integers(29, dtype=dtype)
    assert np.array_equal(gs.spmv(matrix, vector, target=TARGET), matrix @ vector)


@pytest.mark.parametrize("name", matrices())
def test_sampled_products(name):
    matrix = matrices()[name]
    left, right = integers(matrix.shape[0], 16), integers(29, 16)
    expected = (left @ right.T)[matrix.tocoo().row, matrix.tocoo().col]
    assert np.array_equal(gs.sddmm(matrix, left, right, target=TARGET).data, expected)


ELEMENTWISE = """
@T.prim_func
def scaled(a: T.handle, s: T.handle, b: T.handle, indptr: T.handle, indices: T.handle,
           m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    S = T.sp.match_buffer(s, (I,), "float32")
    B = T.sp.match_buffer(b, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "scaled") as [i, j]:
        B[i, j] = A[i, j] * FACTOR + 1.0
"""


@pytest.mark.parametrize("factor", ["2.0", "S[i]"])
@pytest.mark.parametrize("name", matrices())
def test_values_of_stored_elements(name, factor):
    matrix = matrices()[name]
    (rows, columns), scale = matrix.shape, integers(matrix.shape[0])
    kernel = gs.compile(ELEMENTWISE.replace("FACTOR", factor), target=TARGET)
    out = np.zeros_like(matrix.data)
    kernel(matrix.data, scale, out, matrix.indptr, matrix.indices, rows, columns, matrix.nnz)
    by = 2.0 if factor == "2.0" else scale[matrix.tocoo().row]
    assert np.array_equal(out, matrix.data * by + 1)


def test_programs_without_a_rule_run_on_one_thread():
    """Attention has several iterations: it is computed, but not in parallel."""
    matrix = matrices()["mixed"]
    matrix.data[:] = 1.0
    queries, keys, values = integers(37, 4), integers(29, 4), integers(29, 4)
    result = gs.attention(matrix, queries, keys, values, target=TARGET)
    expected = gs.attention(matrix, queries, keys, values)
    assert np.allclose(result, expected, rtol=1e-5, atol=1e-5)
