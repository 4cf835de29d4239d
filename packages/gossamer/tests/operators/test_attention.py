"""Sparse attention through the public API, against a oracle in NumPy, row by row in float64."""

from __future__ import annotations

import numpy as np
import pytest
from csr_matrices import DTYPES, NAMES, matrices
from masks import KINDS
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import lower_by_stage
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.attention import PROGRAM
from gossamer_formats import from_arrays, from_scipy
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Stats
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from gossamer_machine import Machine
from gossamer_schedule.rules import default_schedule
from gossamer_testkit import attention, attention_bound

pytestmark = pytest.mark.unserialized

FEATURES = (0, 1, 7, 16, 33, 128)


def operands(shape, features, *, dtype, seed=6):
    """Q, K and V with values of both signs."""
    random = np.random.default_rng(seed)
    rows, columns = shape
    return tuple(
        random.standard_normal((length, features)).astype(dtype)
        for length in (rows, columns, columns)
    )


def assert_attended(result, matrix, *dense, scale=None):
    expected = attention(matrix, *dense, scale=scale)
    bound = attention_bound(matrix, *dense, scale=scale)
    assert result.shape == expected.shape
    is_finite = np.isfinite(expected)
    error = np.abs(result[is_finite] - expected[is_finite])
    assert (error <= np.finfo(result.dtype).eps * bound[is_finite]).all()
    np.testing.assert_array_equal(result[~is_finite], expected[~is_finite])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", NAMES)
def test_attention_differs_from_float64_by_rounding_only(name, features, dtype):
    matrix = matrices(dtype)[name]
    dense = operands(matrix.shape, features, dtype=dtype)
    for operand in (matrix, from_scipy(matrix)):
        result = gs.attention(operand, *dense)
        assert result.dtype == dtype
        assert_attended(result, matrix, *dense)


@pytest.mark.parametrize("indptr_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("indices_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_storage_of_indices(dtype, indptr_dtype, indices_dtype):
    matrix = matrices(dtype)["unsorted and duplicate columns"]
    tensor = from_arrays(
        "csr",
        matrix.shape,
        indptr=matrix.indptr.astype(indptr_dtype),
        indices=matrix.indices.astype(indices_dtype),
        data=matrix.data,
    )
    for features in (5, 40, 300):
        dense = operands(matrix.shape, features, dtype=dtype)
        assert_attended(gs.attention(tensor, *dense), matrix, *dense)


def small(dtype):
    """A pattern with empty rows at both ends, short rows and one dense row; sizes are not multiples of
    tiles."""
    mask = np.random.default_rng(3).random((11, 19)) < 0.3
    mask[[0, 4, 10]] = False
    mask[6] = True
    return sparse.csr_array(mask.astype(dtype))


MEANS = {"short rows": 2, "long rows": 60, "unknown": None}


@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("features", [1, 7, 33, None])
def test_every_stage_interpreted(features, mean, dtype, index):
    matrix = small(dtype)
    size = 7 if features is None else features
    dense = operands(matrix.shape, size, dtype=dtype)
    arguments = {
        "indptr": matrix.indptr.astype(index), "indices": matrix.indices.astype(index),
        "scale": np.array([0.5], dtype), "m": 11, "n": 19, "nnz": matrix.nnz,
    } | dict(zip("qkv", dense, strict=True)) | ({"feat_size": 7} if features is None else {})  # fmt: skip
    module = module_of(PROGRAM, Variant(dtype, index, index, features))
    schedule = default_schedule(module, Machine(), stats_of(matrix, MEANS[mean]))
    stages = tuple(lower_by_stage(module, schedule))
    for stage in stages if dtype == "float32" else stages[-1:]:  # it inherits what is wrong before
        out = np.full(dense[0].shape, np.nan, dtype)
        run(stage, {**arguments, "out": out})
        assert_attended(out, matrix, *dense, scale=0.5)


def stats_of(matrix, mean):
    """Stats with another length of rows."""
    if mean is None:
        return None
    rows, columns = matrix.shape
    return Stats(rows, columns, nnz=mean * rows, longest_row=columns, empty_rows=0)


@pytest.mark.parametrize("scale", [0.0, -1.5, 3, np.float32(0.25), 40.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_are_scaled(dtype, scale):
    matrix = small(dtype)
    tensor = from_scipy(matrix)
    dense = operands(matrix.shape, 20, dtype=dtype)
    out = np.empty_like(dense[0])
    for operand in (matrix, tensor, tensor):
        gs.attention(operand, *dense, scale, out=out)
        assert_attended(out, matrix, *dense, scale=float(scale))
    out[:] = np.nan
    gs.attention.bind(tensor, *dense, scale, out=out)()
    assert_attended(out, matrix, *dense, scale=float(scale))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [30.0, 1e4])
def test_large_scores_do_not_overflow(dtype, size):
    matrix = small(dtype)
    q, k, v = operands(matrix.shape, 16, dtype=dtype)
    assert_attended(gs.attention(matrix, size * q, k, v), matrix, size * q, k, v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [3, 40])
def test_nan_and_infinity_are_those_of_softmax(dtype, features):
    matrix = small(dtype)
    q, k, v = (np.abs(array) + 1 for array in operands(matrix.shape, features, dtype=dtype))
    k[5, 0], k[7, 0] = -np.inf, np.nan  # weights 0, and NaN in every row that stores column 7
    q[8, -1] = -np.inf  # all scores of a row -inf
    q[9, 0], v[11, 1], v[5, 2] = np.inf, np.inf, np.inf
    for operand in (matrix, from_scipy(matrix)):
        assert_attended(gs.attention(operand, q, k, v), matrix, q, k, v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [0, 6])
def test_rows_without_elements_are_zero(features, dtype):
    empty = sparse.csr_array((4, 3), dtype=dtype)
    partly = sparse.csr_array(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype))
    q, k, v = operands((4, 3), features, dtype=dtype)
    for matrix in (empty, partly):
        out = np.full((4, features), np.nan, dtype)
        gs.attention(matrix, q, k, v, out=out)
        np.testing.assert_array_equal(out, np.diff(matrix.indptr)[:, None] * v[[1] * 4])


def masks():
    """Windows, and windows with global and random elements."""
    at = np.arange(150)
    window = np.abs(at[:, None] - at) <= 8
    bigbird = window | (at < 4) | (at < 4)[:, None]
    return {
        "window": window,
        "global": bigbird | (np.random.default_rng(0).random(window.shape) < 0.03),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("features", [32, 64, 128])
def test_masks_of_transformers(features, mask, dtype):
    matrix = sparse.csr_array(masks()[mask].astype(dtype))
    dense = operands(matrix.shape, features, dtype=dtype)
    expected = gs.attention(from_scipy(matrix), *dense)
    assert_attended(expected, matrix, *dense)
    for kind in (bool, np.int8):
        np.testing.assert_array_equal(gs.attention(matrix.astype(kind), *dense), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_do_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((20_000, 500), density=0.01, rng=rng, dtype=dtype, format="csr")
    dense = operands(matrix.shape, 24, dtype=dtype)
    before, results = gs.get_num_threads(), []
    for threads in (1, 2, 5):
        gs.set_num_threads(threads)
        results.append(gs.attention(matrix, *dense))
    gs.set_num_threads(before)
    for again in results[1:]:
        np.testing.assert_array_equal(again, results[0])


def test_a_bound_call_reads_its_arrays_at_each_call():
    matrix = small("float32")
    q, k, v = operands(matrix.shape, 12, dtype="float32")
    out = np.empty_like(q)
    bound = gs.attention.bind(matrix, q, k, v, out=out)
    for factor in (1, 2):
        q *= factor
        v += 1
        bound()
        assert_attended(out, matrix, q, k, v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_operands_may_have_any_layout(dtype):
    matrix = small(dtype)
    tensor = from_scipy(matrix)
    dense = operands(matrix.shape, 6, dtype=dtype)
    expected = gs.attention(tensor, *dense)
    for place in range(3):
        for layout in (np.asfortranarray, lambda array: np.repeat(array, 2, axis=1)[:, ::2],
                       lambda array: array.astype(array.dtype.newbyteorder(">"))):  # fmt: skip
            changed = [
                layout(array) if number == place else array for number, array in enumerate(dense)
            ]
            changed[place].setflags(write=False)
            out = np.full(expected.shape, np.nan, dtype)
            np.testing.assert_array_equal(gs.attention(tensor, *changed, out=out), expected)


A = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32))
Q, K = np.ones((2, 4), dtype=np.float32), np.ones((3, 4), dtype=np.float32)


@pytest.mark.parametrize(
    ("code", "operands", "named"),
    [
        ("operand.dtype", (Q.astype("int32"), K, K), "'Q' has the dtype int32"),
        ("operand.dtype", (Q, K.astype("float64"), K), "'K' has the dtype float64, 'Q' float32"),
        ("operand.dtype", (Q, K, K.astype("float64")), "'V' has the dtype float64, 'Q' float32"),
        ("operand.shape", (K, K, K), "'Q' has the shape (3, 4); expected (2, any)"),
        ("operand.shape", (Q, Q, K), "'K' has the shape (2, 4); expected (3, 4)"),
        ("operand.shape", (Q, K, K[:, :2]), "'V' has the shape (3, 2); expected (3, 4)"),
        ("operand.kind", (Q.tolist(), K, K), "'Q' has the type 'list'"),
        ("operand.kind", (Q, K, K, "1"), "'scale' has the type 'str'; expected a number or None"),
        ("operand.kind", (Q, K, K, [1.0]), "'scale' has the type 'list'"),
    ],
)
def test_bad_operands(code, operands, named):
    out = np.full((2, 4), 7, dtype=np.float32)
    with pytest.raises(UserError) as caught:
        gs.attention(A, *operands, out=out)
    assert (caught.value.code, (out == 7).all()) == (code, True)
    assert named in str(caught.value)


def test_out_overlaps_no_operand():
    for place in range(3):
        dense = [np.ones((3, 4), dtype=np.float32) for _ in range(3)]
        with pytest.raises(UserError, match=r"operand\.overlap"):
            gs.attention(A[[0, 1, 1]], *dense, out=dense[place])


@pytest.mark.parametrize("features", [16, None])
def test_scores_are_kept_for_a_row_only(features):
    """Only arrays of the caller are as long as the matrix has elements."""
    module = module_of(PROGRAM, Variant(features=features))
    *_, flat = lower_by_stage(module, default_schedule(module, Machine()))
    allocated = [node.buffer for node in walk(flat) if isinstance(node, Allocate)]
    sizes = {free_vars(extent) for buffer in allocated for extent in buffer.shape}
    assert allocated
    assert sizes <= {frozenset(), frozenset({"P_data_length"})}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dense_row_needs_no_stack(dtype):
    mask = np.zeros((3, 400_000), dtype=dtype)
    mask[1] = 1
    mask[2, 7] = 1
    matrix = sparse.csr_array(mask)
    dense = operands(matrix.shape, 3, dtype=dtype)
    assert_attended(gs.attention(from_scipy(matrix), *dense), matrix, *dense)


@pytest.mark.parametrize(("rows", "columns", "features"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_heads_without_elements_give_zeros(rows, columns, features):
    pattern = sparse.csr_array((rows, columns), dtype=np.float32)
    Q, K, V = (np.ones((2, size, features), np.float32) for size in (rows, columns, columns))
    assert np.array_equal(gs.attention(pattern, Q, K, V), np.zeros((2, rows, features)))
