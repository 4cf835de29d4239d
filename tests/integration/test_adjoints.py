"""Adjoints of the operators, compiled with the schedules of the rules, give the gradients of NumPy."""

import numpy as np
import pytest
import scipy.sparse

import gossamer
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import run

RNG = np.random.default_rng(3)
SHAPE, FEATURES = (70, 50), 19


@pytest.fixture(scope="module")
def matrix():
    matrix = scipy.sparse.random(*SHAPE, 0.1, "coo", np.float64, RNG)
    matrix.row[matrix.row == 7] = 8  # an empty row
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    return matrix


def dense(*shape):
    return RNG.standard_normal(shape)


def gradients(operator, matrix, arrays, wanted, **options):
    """The gradients by a kernel, after a comparison with those of the reference interpreter."""
    dtypes = dict.fromkeys(options.pop("buffers"), "float64")
    program = gossamer.adjoint(operator, dtypes=dtypes, wrt=wanted, **options)
    rows, columns = matrix.shape
    structure = {"indptr": matrix.indptr, "indices": matrix.indices}
    values = {**structure, **arrays, "m": rows, "n": columns, "nnz": matrix.nnz}
    names = [param.name for param in program.functions[0].params]
    shapes = {
        name: np.zeros_like(arrays[name.removesuffix("_grad")])
        for name in names
        if name not in values
    }
    results = {name: array.copy() for name, array in shapes.items()}
    arguments = {name: values.get(name, results.get(name)) for name in names}
    gossamer.compile(program)(**arguments)
    again = {name: array.copy() for name, array in shapes.items()}
    run(program, {**arguments, **again})
    for name, array in results.items():
        np.testing.assert_allclose(array, again[name], rtol=1e-10, atol=1e-12)
    return [results[f"{name.lower()}_grad"] for name in wanted]


def test_gradients_of_a_sparse_times_dense_product(matrix):
    right, seed = dense(SHAPE[1], FEATURES), dense(SHAPE[0], FEATURES)
    value_gradients, right_gradients = gradients(
        "spmm",
        matrix,
        {"a": matrix.data, "b": right, "c_grad": seed},
        ["A", "B"],
        buffers="ABC",
        specialize={"feat_size": FEATURES},
    )
    np.testing.assert_allclose(value_gradients, (seed @ right.T)[matrix.nonzero()], rtol=1e-10)
    np.testing.assert_allclose(right_gradients, matrix.T @ seed, rtol=1e-10, atol=1e-12)


def test_gradients_of_a_sparse_times_vector_product(matrix):
    right, seed = dense(SHAPE[1]), dense(SHAPE[0])
    value_gradients, right_gradients = gradients(
        "spmv",
        matrix,
        {"a": matrix.data, "x": right, "y_grad": seed},
        ["A", "X"],
        buffers="AXY",
    )
    rows, columns = matrix.nonzero()
    np.testing.assert_allclose(value_gradients, seed[rows] * right[columns], rtol=1e-10)
    np.testing.assert_allclose(right_gradients, matrix.T @ seed, rtol=1e-10, atol=1e-12)


def test_gradients_of_a_sampled_product(matrix):
    left, right = dense(SHAPE[0], FEATURES), dense(SHAPE[1], FEATURES)
    seed = matrix.copy()
    seed.data = dense(matrix.nnz)
    left_gradients, right_gradients = gradients(
        "sddmm",
        matrix,
        {"x": left, "y": right, "out_grad": seed.data},
        ["X", "Y"],
        buffers=["X", "Y", "Out"],
        specialize={"feat_size": FEATURES},
    )
    np.testing.assert_allclose(left_gradients, seed @ right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(right_gradients, seed.T @ left, rtol=1e-10, atol=1e-12)


def attention(queries, keys, values, mask):
    scores = np.where(mask, queries @ keys.T / np.sqrt(FEATURES), -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.where(mask, np.exp(scores - scores.max(1, keepdims=True)), 0.0)
    totals = powers.sum(1, keepdims=True)
    weights = powers / np.where(totals == 0, 1.0, totals)
    return weights, weights @ values


def test_gradients_of_attention(matrix):
    mask = matrix.toarray() != 0
    arrays = [dense(SHAPE[0], FEATURES), dense(SHAPE[1], FEATURES), dense(SHAPE[1], FEATURES)]
    seed = dense(SHAPE[0], FEATURES)
    scale = np.array([1 / np.sqrt(FEATURES)])
    query_gradients, key_gradients, value_gradients = gradients(
        "attention",
        matrix,
        {**dict(zip("qkv", arrays, strict=True)), "scale": scale, "out_grad": seed},
        ["Q", "K", "V"],
        buffers=["Q", "K", "V", "Scale", "Out", "P", "Most", "Total"],
        specialize={"feat_size": FEATURES},
    )
    weights, _ = attention(*arrays, mask)
    weight_gradients = seed @ arrays[2].T
    score_gradients = (
        weights * (weight_gradients - (weights * weight_gradients).sum(1, keepdims=True)) * scale
    )
    np.testing.assert_allclose(value_gradients, weights.T @ seed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(query_gradients, score_gradients @ arrays[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(key_gradients, score_gradients.T @ arrays[0], rtol=1e-9, atol=1e-12)


def test_the_adjoint_of_a_product_is_scheduled_like_the_operators():
    program = gossamer.adjoint("spmm", specialize={"feat_size": 64})
    decisions = [each.what for each in gossamer.explain(program).decisions]
    sampled = gossamer.explain("sddmm", specialize={"feat_size": 64}).decisions
    assert sampled[0].what == decisions[0] == "groups of 4 elements of a row"


def test_the_adjoint_of_a_lowered_program_is_refused():
    script = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        Y[i] = X[i]
"""
    with pytest.raises(
        ArgumentError, match=r"stage 'loop'; expected 'coordinate'.*\[adjoint.stage\]"
    ):
        gossamer.adjoint(script)


def test_the_gradient_of_a_dense_operand_is_added_up_by_several_threads():
    program = gossamer.adjoint("spmm", wrt=["B"], specialize={"feat_size": 64})
    report = gossamer.explain(program, target="generic-cpu:cpu=skylake-avx512,threads=2")
    assert report.decisions[-1].what == "tiles in parallel"


SOFTMAX = """
@T.prim_func
def softmax(a: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    P = T.sp.match_buffer(p, (I, J), "float32")
    Total = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "total") as [i_t, j_t]:
        with T.init():
            Total[i_t] = 0.0
        Total[i_t] = Total[i_t] + T.exp(A[i_t, j_t])
    with T.sp.iteration([I, J], "SS", "quotients") as [i_q, j_q]:
        P[i_q, j_q] = T.exp(A[i_q, j_q]) / Total[i_q]
"""


def test_the_adjoint_of_an_adjoint_is_scheduled_and_right():
    """Its iterations have variables such as `j_q` and `j_q_1`: a loop that is split frees the name that a
    later one gets."""
    twice = gossamer.adjoint(gossamer.adjoint(SOFTMAX))
    operands = [dense(5, 37).astype("float32") for _ in range(3)]
    results = [np.zeros_like(operands[0]) for _ in range(2)]
    gossamer.compile(twice)(*operands, *results, 5, 37)
    again = [np.zeros_like(operands[0]) for _ in range(2)]
    names = ["a", "p_grad", "a_grad_grad", "a_grad_1", "p_grad_grad"]
    run(twice, dict(zip(names, [*operands, *again], strict=True)) | {"m": 5, "n": 37})
    for result, expected in zip(results, again, strict=True):
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
