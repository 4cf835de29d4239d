"""Programs of products with a factor, without inits, with inits of their own, and with narrow operands
compute what they should, by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.transform.narrow_operands import narrow_operands
from gossamer_ir.transform.remove_inits import remove_inits
from gossamer_ir.transform.scale_values import scale_values
from gossamer_ir.transform.separate_inits import separate_inits

SPMM = """
@T.prim_func
def csrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64,
):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(2)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
SPMV = """
@T.prim_func
def csrmv(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64,
):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j] * B[j]
"""
MATRIX = np.array([[0, 2, 3], [0, 0, 0], [4, 0, 5], [1, 1, 1]], np.float32)


@pytest.fixture(params=[SPMM, SPMV], ids=["spmm", "spmv"])
def script(request):
    return request.param


@pytest.fixture
def dense(script):
    columns = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    return columns if script is SPMM else columns[:, 0].copy()


@pytest.fixture
def arguments(dense):
    """The arguments of the program: the matrix in CSR, the dense operand, and an output of sevens."""
    rows, columns = MATRIX.nonzero()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=4))])
    return {
        "a": MATRIX[rows, columns],
        "b": dense,
        "c": np.full((4, *dense.shape[1:]), 7, np.float32),
        "indptr": indptr.astype(np.int32),
        "indices": columns.astype(np.int32),
        "m": 4,
        "n": 3,
        "nnz": rows.size,
    }


def test_a_factor_multiplies_each_value(script, arguments, dense):
    module = scale_values(parse_module(script), handle="a", factor="alpha")
    run(module, {**arguments, "alpha": np.array([3], np.float32)})
    np.testing.assert_array_equal(arguments["c"], 3 * (MATRIX @ dense))


def test_without_inits_the_sums_are_added_to_the_output(script, arguments, dense):
    run(remove_inits(parse_module(script)), arguments)
    np.testing.assert_array_equal(arguments["c"], 7 + MATRIX @ dense)


def test_separate_inits_set_all_rows_to_zero_first(script, arguments, dense):
    run(separate_inits(parse_module(script)), arguments)
    np.testing.assert_array_equal(arguments["c"], MATRIX @ dense)


def test_narrow_operands_are_added_in_the_dtype_of_the_sums(script, arguments, dense):
    """Products of 2048 are exact in float32; float16 would round their sums."""
    operands = {"a": arguments["a"].astype(np.float16), "b": (dense + 2047).astype(np.float16)}
    run(
        narrow_operands(parse_module(script), ("A", "B"), dtype="float16"),
        {**arguments, **operands},
    )
    np.testing.assert_array_equal(arguments["c"], MATRIX @ operands["b"].astype(np.float32))


def test_a_fill_value_is_stored_in_the_narrow_dtype(script):
    text = script.replace('(I, J), "float32")', '(I, J), "float32", default=1.0)')
    (function,) = narrow_operands(parse_module(text), ("A", "B"), dtype="float16").functions
    (matrix,) = [buffer for buffer in function.buffers if buffer.name == "A"]
    assert matrix.fill.dtype == "float16"
