"""Sums that threads of a block share, each over several terms, in the interpreter of PTX, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators.spmv import SCRIPT
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, require_assembled


def by_threads(lanes, *, target=INTERPRETED):
    """A row for each block; each of its threads adds up elements that are `lanes` apart."""
    schedule = gs.schedule(SCRIPT, target=target).lower().lower()
    (block,) = schedule.get_blocks()
    row, element = schedule.get_loops(block)
    schedule.decompose_reduction(block, loop=element)
    term, lane = schedule.split(element, factors=(None, lanes)).names
    schedule.reorder(lane, term).bind(lane, thread="threadIdx.x")
    return schedule.bind(row, thread="blockIdx.x")


@pytest.mark.parametrize("lanes", [1, 4, 32, 48])
@pytest.mark.parametrize("shape", [(20, 90), (3, 1), (0, 5), (4, 0)])
def test_threads_add_up_their_terms_before_they_combine(shape, lanes):
    matrix = sparse.random_array(shape, density=0.4, format="csr", rng=1, dtype=np.float32)
    matrix.data[:] = 1 + np.arange(matrix.nnz) % 5
    x, y = np.arange(shape[1], dtype=np.float32) % 7, np.full(shape[0], np.nan, np.float32)
    kernel = gs.compile(SCRIPT, target=INTERPRETED, schedule=by_threads(lanes))
    kernel(a=matrix.data, x=x, y=y, indptr=matrix.indptr, indices=matrix.indices)
    np.testing.assert_array_equal(y, matrix @ x)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptxas_assembles_the_sums(architecture, tmp_path):
    require_assembled(by_threads(48, target="cuda-mma-sp").module, architecture, tmp_path)
