"""Repeated calls with a matrix in parts: the plan of the first one."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
from gossamer_ir.errors import ArgumentError


def decomposition(dtype=np.float32, seed=0, **parameters):
    rng = np.random.default_rng(seed)
    stored = sparse.random_array((40, 30), density=0.2, format="csr", rng=rng, dtype=np.float64)
    stored.data = rng.integers(-4, 5, stored.nnz).astype(np.float64)
    stored = stored.astype(dtype)
    return stored, gs.decompose(stored, "hyb", **(parameters or {"c": 2, "k": 1}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [{"c": 2, "k": 1}, {"c": 1, "k": 6}])
def test_later_calls_use_the_plan(dtype, parameters):
    stored, A = decomposition(dtype, **parameters)
    for sizes in ((30,), (30, 5), (30, 7)):
        operator = gs.spmv if len(sizes) == 1 else gs.spmm
        for seed in (1, 2):
            dense = integers(sizes, dtype, seed)
            assert np.array_equal(operator(A, dense), stored @ dense)
            out = np.full((40, *sizes[1:]), np.nan, dtype)
            assert operator(A, dense, out=out) is out
            assert np.array_equal(out, stored @ dense)
            assert operator._plans.joint_plan(A, None, sizes[1:]) is not None
    assert np.array_equal(A @ integers((30, 5), dtype), stored @ integers((30, 5), dtype))


def test_other_operands_are_checked_and_converted():
    stored, A = decomposition()
    dense = integers((30, 5))
    gs.spmm(A, dense)
    assert np.array_equal(gs.spmm(A, np.asfortranarray(dense)), stored @ dense)
    assert np.array_equal(gs.spmm(A, dense, alpha=2.0), 2 * (stored @ dense))
    with pytest.raises(ArgumentError, match="dtype"):
        gs.spmm(A, dense.astype(np.float64))
    with pytest.raises(ArgumentError, match="shape"):
        gs.spmm(A, dense[:-1])
    memory = np.zeros((70, 5), np.float32)
    with pytest.raises(ArgumentError, match="overlaps"):
        gs.spmm(A, memory[:30], out=memory[20:60])


def test_a_plan_keeps_no_operand_alive():
    _, A = decomposition()
    dense = integers((30, 5))
    result = gs.spmm(A, dense)
    references = weakref.ref(dense), weakref.ref(result)
    del dense, result
    gc.collect()
    assert [each() for each in references] == [None, None]


def test_values_of_another_matrix_are_not_used():
    stored, A = decomposition()
    dense = integers((30, 5))
    gs.spmm(A, dense)
    stored.data = integers(stored.nnz, seed=5)
    weighted = A.with_values(stored.data)
    for _ in range(2):
        assert np.array_equal(gs.spmm(weighted, dense), stored @ dense)


def test_plans_are_dropped_with_those_of_the_operator():
    stored, A = decomposition()
    dense = integers((30, 5))
    gs.spmm(A, dense)
    gs.spmm.forget()
    assert gs.spmm._plans.joint_plan(A, None, (5,)) is None
    assert np.array_equal(gs.spmm(A, dense), stored @ dense)
    assert gs.spmm._plans.joint_plan(A, None, (5,)) is not None
    assert gs.spmm(A, dense[:, :0]).shape == (40, 0)
    assert gs.spmm._plans.joint_plan(A, None, (0,)) is None
