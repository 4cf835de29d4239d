"""Rows times a vector with the elements of later rows prefetched, past the ends of rows and of the arrays,
against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import schedule_for_target
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.spmv import PROGRAM
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import Stats
from gossamer_ir.transform.retype_module import retype_module

LARGE = Stats(rows=1 << 20, columns=1 << 20, nnz=20 << 20, longest_row=100, empty_rows=0)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (40, 30), (900, 700)])
def test_products_are_those_of_scipy(shape, dtype, index_dtype):
    module = retype_module(module_of(PROGRAM, Variant()), dtype=dtype, index_dtype=index_dtype)
    target = resolve_elsewhere("generic-cpu:gathers=fast")[1]
    schedule = schedule_for_target(module, target, LARGE)
    assert [step.op for step in schedule.loop].count("prefetch") == 2
    kernel = gs.compile(module, schedule=schedule)
    random = np.random.default_rng(3)
    matrix = sparse.random_array(shape, density=0.2, format="csr", rng=random)
    data = random.integers(-4, 5, matrix.nnz).astype(dtype)
    x, y = random.integers(-3, 4, shape[1]).astype(dtype), np.full(shape[0], 77, dtype)
    indptr, indices = (part.astype(index_dtype) for part in (matrix.indptr, matrix.indices))
    kernel(a=data, x=x, y=y, indptr=indptr, indices=indices)
    expected = sparse.csr_array((data.astype(np.float64), indices, indptr), shape) @ x
    np.testing.assert_array_equal(y, expected)
