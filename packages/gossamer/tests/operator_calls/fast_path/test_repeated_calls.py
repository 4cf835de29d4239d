"""Repeated calls of operators: the plan of an earlier call computes and refuses what the first call does."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

import gossamer as gs
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operator_calls.fast_path import plans
from gossamer.operator_calls.operands.dense_operands import number_operand
from gossamer.operators import NAMES, operator_named
from gossamer_formats import SparseTensor, from_scipy
from gossamer_ir.core.build import index
from gossamer_ir.errors import ArgumentError, FormatError, GossamerError, UnsupportedError
from gossamer_testkit.matrices import oracles

ROWS, COLUMNS, FEATURES = 40, 30, 8
Calls: TypeAlias = Callable[..., Any]


def matrix(seed: int = 0, *, dtype: Any = np.float32, index: Any = np.int32) -> Any:
    random = np.random.default_rng(seed)
    dense = random.integers(1, 5, (ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.3)
    csr = sparse.csr_array(dense.astype(dtype))
    csr.indptr, csr.indices = csr.indptr.astype(index), csr.indices.astype(index)
    return csr


def dense_of(op: str, seed: int = 1, *, dtype: Any = np.float32) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    shapes = baseline_of(op).operand_shapes((ROWS, COLUMNS), FEATURES)
    return tuple(random.integers(-2, 3, shape).astype(dtype) for shape in shapes)


def expected(op: str, A: Any, *dense: Any) -> Any:
    return getattr(oracles, op)(A, *dense)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", NAMES)
def test_every_form_of_a_repeated_call_computes_the_same(op, dtype, index):
    function = getattr(gs, op)
    for seed in range(3):
        A, dense = matrix(seed, dtype=dtype, index=index), dense_of(op, seed, dtype=dtype)
        wanted = expected(op, A, *dense)
        for operand in (A, sparse.csr_matrix(A), from_scipy(A), A.tocoo()):
            for _ in range(2):
                np.testing.assert_allclose(function(operand, *dense), wanted, 1e-5, 1e-5)
                out = np.full(wanted.shape, np.nan, dtype)
                assert function(operand, *dense, out=out) is out
                np.testing.assert_allclose(out, wanted, 1e-5, 1e-5)


def test_names_and_numbers_of_operands_are_as_those_of_a_function():
    A, (B,) = matrix(), dense_of("spmm")
    wanted = gs.spmm(A, B)
    np.testing.assert_array_equal(gs.spmm(A, B=B), wanted)
    np.testing.assert_array_equal(gs.spmm(A=A, B=B), wanted)
    q, k, v = dense_of("attention")
    scaled = gs.attention(A, q, k, v, 0.5)
    for _ in range(2):
        np.testing.assert_array_equal(gs.attention(A, q, k, v, scale=0.5), scaled)
        np.testing.assert_array_equal(gs.attention(A, q, k, v, 0.5), scaled)
    assert not np.array_equal(gs.attention(A, q, k, v), scaled)
    for arguments in [(), (A,), (A, B, B), (A, B, B, B)]:
        with pytest.raises(TypeError):
            gs.spmm(*arguments)
    assert repr(gs.spmm) == "<operator spmm>"
    assert gs.spmm.__name__ == "spmm"
    assert "sparse matrix A" in gs.spmm.__doc__
    assert list(inspect.signature(gs.spmm).parameters)[:2] == ["A", "B"]
    for each in map(operator_named, NAMES):
        assert pickle.loads(pickle.dumps(each)) is each
        assert copy.deepcopy(each) is each


def broken(change: Callable[[Any], None]) -> Any:
    csr = matrix()
    change(csr)
    return csr


def _set(name: str, at: int, value: int) -> Callable[[Any], None]:
    def change(csr: Any) -> None:
        getattr(csr, name)[at] = value

    return change


def _cut(name: str, count: int) -> Callable[[Any], None]:
    def change(csr: Any) -> None:
        setattr(csr, name, getattr(csr, name)[:-count])

    return change


def _replace(name: str, value: Any) -> Callable[[Any], None]:
    def change(csr: Any) -> None:
        setattr(csr, name, value)

    return change


def _wrong_column(change: Callable[[Any], Any]) -> Callable[[Any], None]:
    """The array of columns as `change` makes it, with a column after the last."""

    def changed(csr: Any) -> None:
        csr.indices[7] = COLUMNS
        csr.indices = change(csr.indices)

    return changed


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _unaligned(array: Any) -> Any:
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    memory[:] = array.view(np.uint8)
    return memory.view(array.dtype)


def _wrapping(array: Any) -> Any:
    """64-bit columns, one of which would be valid in 32 bits."""
    return np.where(array == COLUMNS, 2**32, array.astype(np.int64))


BROKEN = {
    "a read-only wrong column": _wrong_column(_read_only),
    "an unaligned wrong column": _wrong_column(_unaligned),
    "a wrong column with strides": _wrong_column(lambda array: np.repeat(array, 2)[::2]),
    "a wrong column of the other byte order": _wrong_column(lambda array: array.astype(">i4")),
    "a column that would wrap around": _wrong_column(_wrapping),
    "a negative column": _set("indices", 3, -1),
    "a column after the last": _set("indices", -1, COLUMNS),
    "a large column": _set("indices", 0, 2**31 - 1),
    "offsets that decrease": _set("indptr", 5, 0),
    "an offset after the last element": _set("indptr", 5, 10_000),
    "a negative offset": _set("indptr", 5, -1),
    "a first offset that is not 0": _set("indptr", 0, 1),
    "a last offset after the last element": _set("indptr", -1, 10_000),
    "a negative last offset": _set("indptr", -1, -4),
    "too few columns": _cut("indices", 1),
    "too few values": _cut("data", 1),
    "too few offsets": _cut("indptr", 1),
    "columns as a list": _replace("indices", [0, 1]),
    "values of another dtype": _replace("data", np.ones(3, np.complex64)),
    "offsets in two dimensions": _replace("indptr", np.zeros((2, 2), np.int32)),
}


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize("name", BROKEN)
def test_a_repeated_call_refuses_what_the_first_one_does(op, name):
    """With `out=`, nothing is written."""
    function, dense = getattr(gs, op), dense_of(op)
    operator = operator_named(op)
    operator.forget()
    with pytest.raises(GossamerError) as first:
        function(broken(BROKEN[name]), *dense)
    good = matrix()
    out = function(good, *dense)
    function(good, *dense)
    kept = out.copy()
    for passed_out in (None, out):
        with pytest.raises(GossamerError) as again:
            function(broken(BROKEN[name]), *dense, out=passed_out)
        assert (again.value.code, str(again.value)) == (first.value.code, str(first.value))
    np.testing.assert_array_equal(out, kept)


@pytest.mark.parametrize("op", NAMES)
def test_bad_dense_operands_are_refused_after_a_good_call(op):
    function, A, dense = getattr(gs, op), matrix(), dense_of(op)
    out = function(A, *dense)
    function(A, *dense)
    for operand in (A, from_scipy(A)):
        for at in range(len(dense)):
            for wrong in (dense[at][:-1], dense[at].astype(np.int32), dense[at].tolist()):
                with pytest.raises(ArgumentError):
                    function(operand, *dense[:at], wrong, *dense[at + 1 :])
        for wrong in (out[:-1], out.astype(np.int32), out.tolist(), np.ma.masked_array(out)):
            with pytest.raises(ArgumentError):
                function(operand, *dense, out=wrong)
    memory = np.zeros(out.size + A.nnz, np.float32)
    memory[: A.nnz] = A.data
    A.data = memory[: A.nnz]
    with pytest.raises(ArgumentError, match="overlaps"):
        function(A, *dense, out=memory[A.nnz - 1 :][: out.size].reshape(out.shape))
    function(A, *dense, out=memory[A.nnz :].reshape(out.shape))


def test_slots_after_the_last_element_are_not_read():
    A = matrix()
    wanted = A @ np.ones(COLUMNS, np.float32)
    A.indices = np.append(A.indices, np.full(5, 999, np.int32))
    A.data = np.append(A.data, np.full(5, np.nan, np.float32))
    for _ in range(2):
        np.testing.assert_array_equal(gs.spmv(A, np.ones(COLUMNS, np.float32)), wanted)


def test_a_tensor_that_is_only_named_csr_is_not_taken_for_one():
    good = from_scipy(matrix())
    gs.spmv(good, np.ones(COLUMNS, np.float32))
    gs.spmv(good, np.ones(COLUMNS, np.float32))
    rows, columns = good.description.axes
    wide = replace(columns, length=index(10**13))
    described = replace(good.description, axes=(rows, wide))
    other = SparseTensor.from_checked(good.storage._replace(description=described))
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"operand\.shape"):
            gs.spmv(other, np.ones(COLUMNS, np.float32))


def test_a_tensor_keeps_no_operand_alive():
    A = from_scipy(matrix())
    (B,) = dense_of("spmm")
    out = gs.spmm(A, B)
    gs.spmm(A, B, out=out)
    alive = [weakref.ref(array) for array in (B, out)]
    del B, out
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def test_similar_matrices_share_a_kernel_and_a_plan():
    """Mini-batches have new sizes each time; plans and kernels belong to a class of sizes."""
    random = np.random.default_rng(0)
    gs.spmm.forget()
    before = len(KERNELS)
    for _ in range(60):
        rows, columns = random.integers(1024, 2048, 2)
        batch = sparse.random_array(
            (rows, columns), density=6.1 / columns, format="csr", dtype=np.float32, rng=random
        )
        B = random.integers(-2, 3, (columns, 16)).astype(np.float32)
        np.testing.assert_allclose(gs.spmm(batch, B), batch @ B, 1e-4, 1e-4)
    assert len(gs.spmm.plans) <= 2
    assert len(KERNELS) - before <= 2


def test_conversions_are_as_before():
    """A matrix that each call converts, such as CSC, has no plan."""
    A, (B,) = matrix(), dense_of("spmm")
    for _ in range(2):
        np.testing.assert_array_equal(gs.spmm(A.tocsc(), B), A @ B)
        np.testing.assert_array_equal(gs.spmm(A, np.asfortranarray(B)), A @ B)
    with pytest.raises(FormatError):
        gs.spmm(A.astype(np.int32), B)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [None, 1, 8])
def test_products_are_scaled_and_added_to_their_output(features, dtype):
    A = matrix(dtype=dtype)
    shape = (COLUMNS,) if features is None else (COLUMNS, features)
    dense = np.random.default_rng(3).integers(-2, 3, shape).astype(dtype)
    function, product = (gs.spmv if features is None else gs.spmm), A @ dense
    start = np.random.default_rng(4).integers(-2, 3, product.shape).astype(dtype)
    for operand in (A, from_scipy(A), A.tocsc(), A.tobsr((2, 2))):
        for alpha, beta in [(1, 0), (2, 0), (0.5, 1), (1, 1), (-1, 2.5), (0, 0.5), (0, 0)]:
            wanted = alpha * product + beta * start
            if beta == 0:
                np.testing.assert_array_equal(function(operand, dense, alpha=alpha), wanted)
            out = start.copy() if beta else np.full_like(start, np.nan)
            assert function(operand, dense, alpha=alpha, beta=beta, out=out) is out
            np.testing.assert_array_equal(out, wanted)


def test_a_matrix_without_elements_scales_its_output():
    A = sparse.csr_array((4, 3), dtype=np.float32)
    out = np.full((4, 2), 3, np.float32)
    gs.spmm(A, np.ones((3, 2), np.float32), alpha=2, beta=0.5, out=out)
    np.testing.assert_array_equal(out, np.full((4, 2), 1.5))


WRONG_FACTORS = {
    "operand.out": {"beta": 1.0},
    "operand.kind": {"alpha": "2"},
    "operand.shape": {"beta": 1.0, "out": np.ones((2, 2), np.float32)},
    "operand.read_only": {"beta": 2.0, "out": np.broadcast_to(np.float32(1), (ROWS, FEATURES))},
}


@pytest.mark.parametrize("code", WRONG_FACTORS)
def test_wrong_factors_are_refused(code):
    A, (B,) = matrix(), dense_of("spmm")
    with pytest.raises(ArgumentError) as caught:
        gs.spmm(A, B, **WRONG_FACTORS[code])
    assert caught.value.code == code


def test_a_number_beyond_the_range_of_floats_is_refused():
    A, v = sparse.csr_array(np.eye(2, dtype=np.float32)), np.ones(2, np.float32)
    for names in (
        {"alpha": 10**400}, {"beta": -(10**400), "out": v.copy()}, {"alpha": -1e39}
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            gs.spmv(A, v, **names)
        assert caught.value.code == "operand.range"


def test_zero_and_negative_zero_are_different_factors():
    for number in (0.0, -0.0, 0.0):
        array = number_operand("alpha", number, np.dtype("float32"))
        assert np.signbit(array[0]) == np.signbit(number)


def test_nothing_is_scaled_if_an_operand_is_wrong():
    A, (B,) = matrix(), dense_of("spmm")
    out = np.ones((ROWS, FEATURES), np.float32)
    for wrong in (B[:-1], B.astype(np.float64)):
        with pytest.raises(ArgumentError):
            gs.spmm(A, wrong, alpha=2.0, beta=2.0, out=out)
    A.indices[0] = COLUMNS
    with pytest.raises(FormatError):
        gs.spmm(A, B, beta=2.0, out=out)
    np.testing.assert_array_equal(out, 1)


@pytest.mark.parametrize("form", [from_scipy, lambda A: A, lambda A: A.tocsc()])
def test_vectors_may_be_columns(form):
    A = matrix()
    (x,) = dense_of("spmv")
    wanted, operand = A @ x, form(A)
    np.testing.assert_array_equal(gs.spmm(operand, x), wanted)
    np.testing.assert_array_equal(gs.spmv(operand, x[:, None]), wanted[:, None])
    out = np.empty((ROWS, 1), np.float32)
    assert gs.spmv(operand, x[:, None], out=out) is out
    np.testing.assert_array_equal(out, wanted[:, None])
    with pytest.raises(ArgumentError, match=r"operand\.shape"):
        gs.spmv(operand, x[:, None], out=np.empty(ROWS + 1, np.float32))
    transposed = np.asfortranarray(dense_of("spmm")[0].T).T
    np.testing.assert_array_equal(gs.spmm(operand, transposed), A @ transposed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_are_multiplied_with_dense_arrays(dtype):
    A = matrix(dtype=dtype)
    tensor = gs.from_scipy(A)
    right = np.random.default_rng(1).integers(-2, 3, (COLUMNS, 5)).astype(dtype)
    left = np.random.default_rng(2).integers(-2, 3, (4, ROWS)).astype(dtype)
    np.testing.assert_array_equal(tensor @ right, A @ right)
    np.testing.assert_array_equal(tensor @ right[:, 0], A @ right[:, 0])
    np.testing.assert_array_equal(left @ tensor, left @ A)
    np.testing.assert_array_equal(left[0] @ tensor, left[0] @ A)
    np.testing.assert_array_equal(tensor.T @ left.T, A.T @ left.T)
    for wrong in (tensor, A):
        with pytest.raises(UnsupportedError, match="Use to_scipy"):
            tensor @ wrong
    for wrong in (3, [1.0], np.ones((2, 2, 2))):
        with pytest.raises(TypeError):
            tensor @ wrong
        with pytest.raises(TypeError):
            wrong @ tensor
    with pytest.raises(ArgumentError, match=r"operand\.shape"):
        tensor @ left


@pytest.mark.parametrize("heads", [(3,), (2, 3)])
def test_attention_of_several_heads(heads):
    A, random = matrix(), np.random.default_rng(0)
    q = random.random((*heads, ROWS, FEATURES)).astype(np.float32)
    k, v = random.random((2, *heads, COLUMNS, FEATURES)).astype(np.float32)
    wanted = np.stack([gs.attention(A, q[at], k[at], v[at]) for at in np.ndindex(heads)]).reshape(
        q.shape
    )
    out = np.empty_like(q)
    for operand in (A, from_scipy(A), A.astype(bool)):
        np.testing.assert_array_equal(gs.attention(operand, q, k, v), wanted)
        assert gs.attention(operand, q, k, v, out=out) is out
        np.testing.assert_array_equal(out, wanted)
    inner = np.moveaxis(np.ascontiguousarray(np.moveaxis(q, -2, 0)), 0, -2)
    np.testing.assert_array_equal(gs.attention(A, inner, k, v), wanted)
    for wrong in ((q, k[0], v), (q, k, v[..., :-1, :]), (q, k, v.astype(np.float64))):
        out[...] = 7
        with pytest.raises(ArgumentError):
            gs.attention(A, *wrong, out=out)
        assert (out == 7).all()


def test_heads_must_be_those_of_all_operands():
    q, k, v = dense_of("attention")
    with pytest.raises(ArgumentError) as caught:
        gs.attention(matrix(), np.stack([q] * 3), k, np.stack([v] * 3))
    assert caught.value.code == "operand.heads"


@pytest.fixture
def _kernels_check(monkeypatch):
    """Kernels check the index arrays of SciPy matrices of any size themselves."""
    monkeypatch.setattr(plans, "MIN_FUSED_CHECK", 0)


def checking_plans(op: str) -> list[Any]:
    plans = [plans.make_checking() for plans in operator_named(op)._plans.by_key.values()]
    return [plan for plan in plans if plan is not None]


@pytest.mark.usefixtures("_kernels_check")
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["spmm", "spmv", "sddmm"])
def test_a_kernel_that_checks_the_indices_itself_computes_and_refuses_the_same(op, index):
    function = getattr(gs, op)
    A, dense = matrix(index=index), dense_of(op)
    function.forget()
    for _ in range(3):
        np.testing.assert_allclose(function(A, *dense), expected(op, A, *dense), 1e-5, 1e-5)
    (plan,) = checking_plans(op)
    assert not any(param.facts for param in plan.kernel.signature.buffers)
    for name, place, value in [
        ("indices", 0, -1), ("indices", A.nnz - 1, COLUMNS), ("indices", 40, np.iinfo(index).max),
        ("indices", 41, np.iinfo(index).min), ("indptr", 7, -3), ("indptr", 20, A.nnz + 1),
        ("indptr", 3, np.iinfo(index).max), ("indptr", ROWS - 1, 0),
    ]:  # fmt: skip
        wrong = A.copy()
        getattr(wrong, name)[place] = value
        with pytest.raises(FormatError) as fresh:
            function(wrong, *dense)
        out = np.full(expected(op, A, *dense).shape, 7, np.float32)
        with pytest.raises(FormatError) as caught:
            function(wrong, *dense, out=out)
        assert str(fresh.value) == str(caught.value)
        assert (out == 7).all(), "a result that was passed is untouched"


@pytest.mark.usefixtures("_kernels_check")
def test_attention_is_checked_before_the_call():
    """Its kernel reads the offsets of all rows for the size of its buffers."""
    A, dense = matrix(), dense_of("attention")
    gs.attention.forget()
    for _ in range(3):
        np.testing.assert_allclose(
            gs.attention(A, *dense), expected("attention", A, *dense), 1e-5, 1e-5
        )
    assert not checking_plans("attention")


@pytest.mark.parametrize("op", ["spmm", "spmv", "sddmm"])
def test_large_matrices_are_checked_by_the_kernel(op):
    rows = 30_000
    random = np.random.default_rng(5)
    lengths = random.integers(0, 12, rows)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = random.integers(0, rows, indptr[-1]).astype(np.int32)
    A = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(rows, rows))
    assert A.nnz > plans.MIN_FUSED_CHECK
    shapes = {"spmm": [(rows, 4)], "spmv": [(rows,)], "sddmm": [(rows, 4)] * 2}[op]
    dense = [random.integers(-2, 3, shape).astype(np.float32) for shape in shapes]
    function = getattr(gs, op)
    function.forget()
    wanted = function(from_scipy(A), *dense)
    for _ in range(3):
        np.testing.assert_array_equal(function(A, *dense), wanted)
    assert checking_plans(op)
    indices[random.integers(len(indices))] = rows
    with pytest.raises(FormatError, match="indices"):
        function(A, *dense)
