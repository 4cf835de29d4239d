"""SpMM and SpMV through the public API, against SciPy in float64."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from csr_matrices import DTYPES, NAMES, integers, matrices, untouched
from scipy import sparse

import gossamer as gs
from gossamer import operators
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.operators import operator_named
from gossamer_formats import from_arrays, from_scipy
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_spmv_is_exact_on_integers(name, dtype):
    matrix = matrices(dtype)[name]
    x = integers(matrix.shape[1], seed=6, dtype=dtype)
    expected = matrix.astype("float64") @ x.astype("float64")
    for operand in (matrix, from_scipy(matrix)):
        result = gs.spmv(operand, x)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [0, 1, 7, 16, 33])
@pytest.mark.parametrize("name", NAMES)
def test_spmm_is_exact_on_integers(name, features, dtype):
    matrix = matrices(dtype)[name]
    dense = integers((matrix.shape[1], features), seed=7, dtype=dtype)
    expected = matrix.astype("float64") @ dense.astype("float64")
    for operand in (matrix, from_scipy(matrix)):
        result = gs.spmm(operand, dense)
        assert (result.dtype, result.shape) == (dtype, (matrix.shape[0], features))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("indptr_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("indices_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_storage_of_indices(dtype, indptr_dtype, indices_dtype):
    matrix = matrices(dtype)["usual"]
    tensor = from_arrays(
        "csr",
        matrix.shape,
        indptr=matrix.indptr.astype(indptr_dtype),
        indices=matrix.indices.astype(indices_dtype),
        data=matrix.data,
    )
    dense = integers((29, 8), seed=7, dtype=dtype)
    np.testing.assert_array_equal(gs.spmm(tensor, dense), matrix @ dense)
    np.testing.assert_array_equal(gs.spmv(tensor, dense[:, 0]), matrix @ dense[:, 0])


@pytest.mark.parametrize("kind", ["coo", "csc", "bsr", "dia", "dok", "lil"])
def test_other_kinds_of_scipy_matrices(kind):
    matrix = matrices("float64")["usual"]
    x = integers(29, seed=6, dtype="float64")
    np.testing.assert_array_equal(gs.spmv(matrix.asformat(kind), x), matrix @ x)


def operand_layouts():
    dense = integers((29, 6), seed=7, dtype="float32")
    wide = np.zeros((29, 12), dtype="float32")
    wide[:, ::2] = dense
    frozen = dense.copy()
    frozen.setflags(write=False)
    raw = np.zeros(dense.nbytes + 1, dtype=np.uint8)
    raw[1:] = dense.reshape(-1).view(np.uint8)
    return {
        "fortran": np.asfortranarray(dense),
        "strided": wide[:, ::2],
        "reversed": np.ascontiguousarray(dense[::-1])[::-1],
        "read-only": frozen,
        "unaligned": raw[1:].view("float32").reshape(29, 6),
        "foreign byte order": dense.astype(">f4"),
        "a subclass": dense.view(np.matrix),
    }


@pytest.mark.parametrize("layout", list(operand_layouts()))
def test_a_dense_operand_may_have_any_layout(layout):
    matrix = matrices("float32")["usual"]
    dense = operand_layouts()[layout]
    expected = matrix @ np.ascontiguousarray(dense, dtype="float32").view(np.ndarray)
    result = gs.spmm(matrix, dense)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_go_where_they_belong(dtype):
    matrix = sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=dtype))
    dense = np.array([[np.nan, 1], [np.inf, 2], [3, -np.inf]], dtype=dtype)
    expected = [[np.nan, -np.inf], [0, 0], [np.inf, 6]]
    np.testing.assert_array_equal(gs.spmm(matrix, dense), expected)


def test_out_is_filled_and_returned():
    matrix = matrices("float32")["empty rows at both ends"]
    dense = integers((29, 5), seed=7, dtype="float32")
    out = np.full((37, 5), np.nan, dtype="float32")
    assert gs.spmm(matrix, dense, out=out) is out
    np.testing.assert_array_equal(out, matrix @ dense)
    y = np.full(37, np.nan, dtype="float32")
    assert gs.spmv(matrix, dense[:, 0], out=y) is y
    np.testing.assert_array_equal(y, matrix @ dense[:, 0])


@pytest.mark.parametrize("name", ["no nonzeros", "no columns"])
def test_out_is_zero_where_there_is_nothing_to_add(name):
    matrix = matrices("float32")[name]
    out = np.full((37, 5), np.nan, dtype="float32")
    gs.spmm(matrix, np.ones((matrix.shape[1], 5), dtype="float32"), out=out)
    assert not out.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_do_not_depend_on_the_number_of_threads(dtype):
    matrix = sparse.random_array(
        (20_000, 500), density=0.01, rng=np.random.default_rng(1), dtype=dtype
    ).tocsr()
    dense = np.random.default_rng(2).standard_normal((500, 24)).astype(dtype)
    before = gs.get_num_threads()
    results = []
    for threads in (1, 2, 5):
        gs.set_num_threads(threads)
        results.append((gs.spmm(matrix, dense), gs.spmv(matrix, dense[:, 0])))
    gs.set_num_threads(before)
    for product, vector in results[1:]:
        np.testing.assert_array_equal(product, results[0][0])
        np.testing.assert_array_equal(vector, results[0][1])


def test_threads_may_call_and_compile_at_once():
    matrix = matrices("float64")["usual"]
    tensor = from_scipy(matrix)
    dense = integers((29, 40), seed=7, dtype="float64")

    def product(features):
        return gs.spmm(tensor, dense[:, :features])

    widths = [*range(1, 41), *range(40, 0, -1)]
    with ThreadPoolExecutor(8) as pool:
        for features, result in zip(widths, pool.map(product, widths), strict=True):
            np.testing.assert_array_equal(result, matrix @ dense[:, :features])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_offsets_beyond_two_to_the_31_are_exact(index):
    rows, features = 2**26 + 5, 33
    dense = untouched(rows * features, "float32").reshape(rows, features)
    dense[-3:] = integers((3, features), seed=3, dtype="float32")
    columns = np.array([rows - 1, 0, rows - 3, rows - 2], dtype=index)
    tensor = from_arrays(
        "csr",
        (3, rows),
        indptr=np.array([0, 2, 2, 4], dtype=index),
        indices=columns,
        data=np.array([2, 5, 3, 7], dtype=np.float32),
    )
    expected = np.stack([2 * dense[-1], np.zeros(features), 3 * dense[-3] + 7 * dense[-2]])
    np.testing.assert_array_equal(gs.spmm(tensor, dense), expected)


def test_columns_beyond_two_to_the_31_are_exact():
    length = 2**31 + 10
    x = untouched(length, "float32")
    x[-2:] = (5, 7)
    tensor = from_arrays(
        "csr",
        (2, length),
        indptr=np.array([0, 2, 3], dtype=np.int64),
        indices=np.array([length - 1, 0, length - 2], dtype=np.int64),
        data=np.array([2, 1, 3], dtype=np.float32),
    )
    np.testing.assert_array_equal(gs.spmv(tensor, x), [14, 15])


@pytest.mark.parametrize("rows", [0, 1, 20])
@pytest.mark.parametrize("features", [None, 0, 1, 5])
def test_a_bound_operator_reads_its_arrays_at_each_call(rows, features):
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((rows, 30), density=0.2, rng=rng, format="csr")
    matrix.data = rng.integers(-3, 4, size=matrix.nnz).astype(np.float64)
    shape = (30,) if features is None else (30, features)
    dense = rng.integers(-3, 4, size=shape).astype(np.float64)
    out = np.full((rows, *shape[1:]), np.nan)
    bound = (gs.spmv if features is None else gs.spmm).bind(matrix, dense, out=out)
    for factor in (1, 2):
        dense *= factor
        bound()
        np.testing.assert_array_equal(out, matrix.toarray() @ dense)


def test_a_bound_operator_refuses_what_it_would_have_to_copy():
    matrix = sparse.eye_array(4, format="csr")
    with pytest.raises(ArgumentError) as caught:
        gs.spmm.bind(matrix, np.ones((6, 4)).T[:, :3], out=np.empty((4, 3)))
    assert caught.value.code == "operand.contiguity"


@pytest.mark.parametrize("name", operators.NAMES)
def test_every_operator_is_exported_and_has_a_baseline(name):
    assert getattr(gs, name) is operator_named(name)
    assert name in gs.__all__
    assert baseline_of(name).description
