"""hyb in one launch of a GPU, in the interpreter of PTX: products with graphs, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from benchmarks.matrices import MissingMatrixError, load_matrix
from gossamer.operators.spmm import SCRIPT as SPMM
from gossamer.operators.spmv import SCRIPT as SPMV
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, ptx_of, require_assembled


def graph(rows, columns, *, density=0.15):
    """Empty rows at both ends and within, and one dense row."""
    random = np.random.default_rng(rows)
    dense = random.integers(1, 5, (rows, columns)) * (random.random((rows, columns)) < density)
    if rows > 8:
        dense[0] = dense[-1] = dense[3:6] = 0
        dense[rows // 2] = 1 + np.arange(columns) % 3
    return sparse.csr_array(dense.astype(np.float32))


def require_product(matrix, features, **parameters):
    A = gs.decompose(matrix, "hyb", **parameters)
    shape = (matrix.shape[1],) if features is None else (matrix.shape[1], features)
    B = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
    C = np.full((matrix.shape[0], *shape[1:]), np.nan, np.float32)
    program = A.rewrite(SPMV if features is None else SPMM, at_once=True)
    names = ("x", "y") if features is None else ("b", "c")
    gs.compile(program, target=INTERPRETED)(**dict(zip(names, (B, C), strict=True)), **A.arguments)
    np.testing.assert_array_equal(C, matrix @ B)


@pytest.mark.parametrize("parameters", [{"k": 2}, {"k": 6}, {"c": 2, "k": 2}, {"c": 3, "k": 0}])
@pytest.mark.parametrize("features", [None, 1, 8, 40])
def test_products_are_those_of_the_matrix(features, parameters):
    require_product(graph(40, 30), features, **parameters)


@pytest.mark.parametrize("shape", [(1, 1), (2, 70), (70, 2), (3, 5)])
def test_buckets_and_matrices_may_be_empty(shape):
    require_product(graph(*shape), 5, k=3)
    require_product(graph(*shape, density=0), 5, k=1)
    require_product(graph(*shape, density=1), 5, c=2, k=1)


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_graphs_of_papers(name):
    try:
        matrix = sparse.csr_array(load_matrix(name).csr)
    except MissingMatrixError as error:
        pytest.skip(str(error))
    matrix.data[:] = 1 + np.arange(matrix.nnz) % 3
    require_product(matrix, 4, k=2)


def test_only_rows_that_are_stored_several_times_are_added_to_atomically():
    A = gs.decompose(graph(40, 30), "hyb", k=2)
    program = A.rewrite(SPMM, at_once=True)
    text = ptx_of(program)
    # The init, and all three buckets.
    assert text.count(".entry") == 2
    assert text.count("red.") + text.count("atom.") == 1
    report = gs.explain(program, target=INTERPRETED)
    assert report.rule == "grid_iterations"
    assert report.decisions[-1].what == "one launch for csrmm_p0b0, csrmm_p0b1, csrmm_p0b2"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_of_operators_take_one_launch(dtype):
    matrix = graph(40, 30)
    A = gs.decompose(gs.SparseTensor(matrix).astype(dtype), "hyb", c=2, k=2)
    B = np.random.default_rng(1).integers(-3, 4, (30, 8)).astype(dtype)
    expected = matrix @ B.astype(np.float32)
    np.testing.assert_array_equal(gs.spmm(A, B, target=INTERPRETED), expected)
    C = np.full((40, 8), np.nan, np.float32)
    step = gs.spmm.bind(A, B, out=C, target=INTERPRETED)
    assert len(step.calls) == 1
    step()
    np.testing.assert_array_equal(C, expected)
    y = gs.spmv(A, B[:, 0].copy(), target=INTERPRETED)
    np.testing.assert_array_equal(y, expected[:, 0])


@pytest.mark.parametrize(
    ("alpha", "beta", "launches"), [(2.0, 0.0, 2), (1.0, 1.0, 1), (2.0, 3.0, 1)]
)
def test_products_of_operators_have_factors(alpha, beta, launches, monkeypatch):
    """With beta, all parts add to the output, which was multiplied before; without, it is set to zero."""
    matrix = graph(40, 30)
    A, B = gs.decompose(matrix, "hyb", k=2), np.ones((30, 8), np.float32)
    launched, launch = [], InterpreterDriver.launch

    def recorded_launch(self, function, *arguments, **keywords):
        launched.append([str(step.name) for step in function.handle.instructions])
        launch(self, function, *arguments, **keywords)

    monkeypatch.setattr(InterpreterDriver, "launch", recorded_launch)
    out = np.ones((40, 8), np.float32)
    gs.spmm(A, B, alpha=alpha, beta=beta, out=out, target=INTERPRETED)
    np.testing.assert_array_equal(out, alpha * (matrix @ B) + beta)
    assert len(launched) == launches
    # Only the bucket with rows that were cut.
    assert sum(names.count("atom") + names.count("red") for names in launched) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptxas_assembles_the_launch(architecture, tmp_path):
    A = gs.decompose(graph(40, 30), "hyb", c=2, k=3)
    require_assembled(A.rewrite(SPMM, at_once=True), architecture, tmp_path)
