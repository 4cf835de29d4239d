"""Programs and data for the tests of schedules, and the oracle: exact SciPy results on small integers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, replay
from gossamer_testkit import examples

GARBAGE = 77.0


def _matrix(rows: int, columns: int) -> sparse.csr_matrix:
    """Empty rows at both ends, one dense row, the rest sparse; values are small integers."""
    random = np.random.default_rng(rows * 31 + columns)
    dense = random.integers(-3, 4, (rows, columns)) * (random.random((rows, columns)) < 0.4)
    if rows > 2:
        dense[0] = dense[-1] = 0
        dense[rows // 2] = np.arange(columns) % 5 + 1
    return sparse.csr_matrix(dense.astype(np.float32))


def _arguments(module: Module, matrix: sparse.csr_matrix, arrays: dict) -> dict:
    rows, columns = matrix.shape
    arguments = {"indptr": matrix.indptr, "indices": matrix.indices, "a": matrix.data}
    arguments |= {"m": rows, "n": columns, "nnz": matrix.nnz} | arrays
    entry = next(function for function in module.functions if function.name == module.entry)
    return {param.name: arguments[param.name] for param in entry.params}


@pytest.fixture(scope="session")
def spmm():
    """The loop-stage SpMM; with a number, the feature size is that constant."""

    def make(features: int | None = None) -> Module:
        return examples.SPMM if features is None else specialize(examples.SPMM, {"K": features})

    return make


@pytest.fixture(scope="session")
def require_spmm():
    """Asserts that a module is valid and computes A @ B exactly."""

    def check(module: Module, features: int, *, rows: int = 5, columns: int = 4) -> None:
        verify(module)
        matrix = _matrix(rows, columns)
        dense = np.random.default_rng(7).integers(-3, 4, (columns, features)).astype(np.float32)
        result = np.full((rows, features), GARBAGE, np.float32)
        sizes = {"K": features, "width": features}
        run(module, _arguments(module, matrix, {"b": dense, "c": result} | sizes))
        np.testing.assert_array_equal(result, matrix @ dense)

    return check


@pytest.fixture(scope="session")
def require_spmm_after_each_step(require_spmm):
    """Asserts that a module computes A @ B after each step, and that the trace gives the last one again."""

    def check(module: Module, steps: tuple, features: int) -> None:
        builder = ScheduleBuilder(module)
        for op, names, options in steps:
            getattr(builder, op)(*names, **options)
            require_spmm(builder.module, features)
        assert replay(module, builder.trace) == builder.module

    return check


@pytest.fixture(scope="session")
def require_spmv():
    """Asserts that a module is valid and computes A @ x exactly."""

    def check(module: Module, *, rows: int = 7, columns: int = 9) -> None:
        verify(module)
        matrix = _matrix(rows, columns)
        vector = np.arange(columns, dtype=np.float32) - 3
        result = np.full(rows, GARBAGE, np.float32)
        run(module, _arguments(module, matrix, {"x": vector, "y": result}))
        np.testing.assert_array_equal(result, matrix @ vector)

    return check


@pytest.fixture(scope="session")
def program():
    """A loop-stage function of float32 buffers X, Y, Z (8, 8), V, W (64,) and int32 P (9,)."""

    def make(body: str, *, facts: str = "") -> Module:
        lines = "\n".join("    " + line for line in (facts + "\n" + body).splitlines())
        return parse_module(_HEADER + lines + "\n")

    return make


_HEADER = """
@T.prim_func
def program(x: T.handle, y: T.handle, z: T.handle, v: T.handle, w: T.handle, p: T.handle,
            n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (8, 8), "float32")
    Y = T.match_buffer(y, (8, 8), "float32")
    Z = T.match_buffer(z, (8, 8), "float32")
    V = T.match_buffer(v, (64,), "float32")
    W = T.match_buffer(w, (64,), "float32")
    P = T.match_buffer(p, (9,), "int32")
"""
