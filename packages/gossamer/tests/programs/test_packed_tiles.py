"""Products with packed tiles of features, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import flat_module, schedule_for_target
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Allocate
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import collect
from gossamer_testkit import script

OFTEN = Stats(rows=8192, columns=8192, nnz=32 * 8192, longest_row=128, empty_rows=1)
TARGET = "generic-cpu:l2=2097152,l3=16777216,cores=2"


def rows_of_many_lengths(rows, columns, dtype):
    """A matrix whose rows have 0, 1, 2, ... elements."""
    random = np.random.default_rng(columns)
    whole = random.integers(1, 5, (rows, columns)).astype(dtype)
    for row in range(rows):
        whole[row, random.permutation(columns)[row % (columns + 1) :]] = 0
    return sparse.csr_array(whole)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_thread_computes_with_its_own_copy(dtype, threads):
    matrix = rows_of_many_lengths(70, 45, dtype)
    features = 2048 // np.dtype(dtype).itemsize
    dense = np.random.default_rng(1).integers(-3, 4, (45, features)).astype(dtype)
    result = np.full((70, features), 7, dtype)
    module = specialize(
        retype_module(parse_module(script("csr_spmm")), dtype=dtype, index_dtype="int32"),
        {"feat_size": features},
    )
    resolved = resolve_elsewhere(TARGET)[1]
    flat = flat_module(module, target=TARGET, stats=OFTEN)
    copies = [
        node.buffer.scope
        for function in flat.functions
        for node in collect(Allocate, *function.body)
        if node.buffer.name.endswith("_global")
    ]
    assert copies == ["global"]
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        kernel = gs.compile(
            module, target=TARGET, schedule=schedule_for_target(module, resolved, OFTEN)
        )
        kernel(a=matrix.data, b=dense, c=result, indptr=matrix.indptr, indices=matrix.indices)
    finally:
        gs.set_num_threads(before)
    np.testing.assert_array_equal(result, matrix.astype(np.float64) @ dense)
