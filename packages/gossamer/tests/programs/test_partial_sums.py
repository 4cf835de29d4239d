"""Long rows times few features, with partial sums side by side, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import flat_module, schedule_for_target
from gossamer.targets.resolve_target import machine_for, resolve_elsewhere
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Allocate
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import collect
from gossamer_testkit import script
from gossamer_testkit.matrices.oracles import tolerance

LONG = Stats(rows=64, columns=64, nnz=64 * 40, longest_row=80, empty_rows=1)
FEWER_USES = Stats(rows=64, columns=64, nnz=64 * 20, longest_row=40, empty_rows=1)
WIDE, NARROW = "generic-cpu:vector_bits=512", "generic-cpu:vector_bits=256"
"""Vectors of a cache line and of half a line. They run on any machine, since LLVM splits vectors that are
wider than its registers."""
CASES = [
    (WIDE, 1, LONG),
    (WIDE, 2, LONG),
    (WIDE, 1, FEWER_USES),
    (WIDE, 2, FEWER_USES),
    (WIDE, 4, FEWER_USES),
    (NARROW, 1, LONG),
    (NARROW, 2, LONG),
    (NARROW, 1, FEWER_USES),
]
"""Targets with the numbers of vectors of features and the matrices for which a row has partial sums."""


def rows_of_every_length(columns, dtype):
    """A matrix whose rows have 0, 1, 2, ... elements, so that every number of elements is left over."""
    random = np.random.default_rng(columns)
    whole = random.integers(1, 5, (columns + 1, columns)).astype(dtype)
    for row in range(columns + 1):
        whole[row, random.permutation(columns)[row:]] = 0
    return sparse.csr_array(whole)


def beginning_at(element, array):
    """A copy of an array that begins so many elements after the start of a cache line."""
    memory = np.zeros(array.size + 64, array.dtype)
    first = -memory.ctypes.data % 64 // array.itemsize + element
    copy = memory[first : first + array.size].reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("target", "vectors", "stats"), CASES)
@pytest.mark.parametrize("element", [0, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_every_length(dtype, target, vectors, stats, element, threads):
    resolved = resolve_elsewhere(target)[1]
    matrix = rows_of_every_length(45, dtype)
    features = vectors * machine_for(target).lanes(dtype)
    dense = np.random.default_rng(1).integers(-3, 4, (45, features)).astype(dtype)
    dense = beginning_at(element, dense)
    result = np.full((46, features), 7, dtype)
    text = script("csr_spmm")
    module = specialize(
        retype_module(parse_module(text), dtype=dtype, index_dtype="int32"), {"feat_size": features}
    )
    decisions = gs.explain(module, stats=stats, target=target).decisions
    assert any(
        decision.what.endswith("partial sums of a row in registers") for decision in decisions
    )
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        kernel = gs.compile(module, schedule=schedule_for_target(module, resolved, stats))
        kernel(a=matrix.data, b=dense, c=result, indptr=matrix.indptr, indices=matrix.indices)
    finally:
        gs.set_num_threads(before)
    np.testing.assert_array_equal(result, matrix.astype(np.float64) @ dense)


def test_the_operator_uses_partial_sums():
    random = np.random.default_rng(0)
    matrix = sparse.random_array(
        (300, 200), density=0.2, format="csr", dtype=np.float32, random_state=random
    )
    dense = random.random((200, 16), dtype=np.float32)
    rounding = tolerance(2 * 200, "float32")
    np.testing.assert_allclose(gs.spmm(matrix, dense), matrix @ dense, rtol=rounding)


def test_sums_are_in_registers_and_the_operand_is_packed():
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": 16})
    flat = flat_module(module, stats=LONG)
    sizes = {
        node.buffer.name: node.buffer.scope
        for function in flat.functions
        for node in collect(Allocate, *function.body)
    }
    assert sizes == {"B_data_global": "global", "C_data_rf": "local"}
