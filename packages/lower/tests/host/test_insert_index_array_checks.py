"""`insert_index_array_checks`: kernels refuse exactly the index arrays that lack declared facts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import Guard
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_to_flat

PROGRAM = """
@T.prim_func
def rows(
    p: T.handle, c: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64, nnz: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 0, {attribute}}})
    P = T.match_buffer(p, (m + 1,), "{offsets}")
    C = T.match_buffer(c, (nnz,), "{columns}")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(in_range(C, 0, n))
    {facts}
    for i in T.parallel({rows}):
        Y[i] = 0.0
        {loop}:
            Y[i] = Y[i] + X[{index}]
"""
ROW = "for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i]))"
OWN = "T.int64(C[T.int64(P[i]) + j])"
CHECKED = '"check_index_arrays": True'


def lowered(
    *, attribute=CHECKED, offsets="int32", columns="int32", facts="", rows="m", loop=ROW, index=OWN
):
    text = PROGRAM.format(
        attribute=attribute, offsets=offsets, columns=columns, facts=facts, rows=rows, loop=loop,
        index=index,
    )  # fmt: skip
    return lower_to_flat(parse_module(text))


def facts_of(module):
    return sum((function.facts for function in module.functions), ())


def result(module, indptr, indices, columns):
    """The result of the interpreter for a vector 0, 1, ...; None if a test stops the program."""
    sizes = {"m": len(indptr) - 1, "n": columns, "nnz": len(indices)}
    vector = np.arange(columns, dtype=np.float32)
    out = np.full(len(indptr) - 1, np.nan, np.float32)
    try:
        run(module, {"p": indptr, "c": indices, "x": vector, "y": out, **sizes}, chunks=2)
    # Any other error would be an access out of bounds, before which no test stopped the program.
    except GuardFailed:
        return None
    return out


def sums(indptr, indices):
    vector = indices.astype(np.float32)
    return np.array([vector[a:b].sum() for a, b in pairwise(indptr)])


def csr(rows, columns, nnz, *, seed, offsets, indices):
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(0, nnz + 1, max(rows - 1, 0)))
    indptr = np.concatenate(([0], cuts, [nnz])).astype(offsets)
    return indptr, random.integers(0, max(columns, 1), nnz).astype(indices)


@pytest.mark.parametrize("offsets", ["int32", "int64"])
@pytest.mark.parametrize("columns", ["int32", "int64"])
def test_valid_arrays_pass_for_all_sizes_of_blocks(offsets, columns):
    module = lowered(offsets=offsets, columns=columns)
    assert diagnostics(module) == ()
    assert facts_of(module) == ()
    # Fewer rows than a vector, a block that is not full, several blocks, long rows, empty rows only.
    for seed, (rows, nnz) in enumerate([(1, 3), (5, 0), (16, 90), (17, 40), (40, 2000), (3, 500)]):
        indptr, indices = csr(rows, 70, nnz, seed=seed, offsets=offsets, indices=columns)
        actual = result(module, indptr, indices, 70)
        np.testing.assert_array_equal(actual, sums(indptr, indices))


@pytest.mark.parametrize("offsets", ["int32", "int64"])
@pytest.mark.parametrize("columns", ["int32", "int64"])
def test_a_wrong_element_anywhere_stops_the_program(offsets, columns):
    module = lowered(offsets=offsets, columns=columns)
    indptr, indices = csr(37, 50, 400, seed=1, offsets=offsets, indices=columns)
    least, most = np.iinfo(columns).min, np.iinfo(columns).max
    for place in (0, 1, 15, 16, 17, 63, 64, 200, 398, 399):
        for value in (-1, 50, least, most):
            wrong = indices.copy()
            wrong[place] = value
            assert result(module, indptr, wrong, 50) is None, (place, value)
    least, most = np.iinfo(offsets).min, np.iinfo(offsets).max
    for place in (0, 1, 15, 16, 17, 31, 35, 36, 37):
        for value in (-1, 401, least, most):
            wrong = indptr.copy()
            wrong[place] = value
            assert result(module, wrong, indices, 50) is None, (place, value)


def test_offsets_that_do_not_begin_with_0_or_end_with_the_number_of_elements_are_refused():
    module = lowered()
    indices = np.zeros(4, np.int32)
    assert result(module, np.array([0, 2, 4], np.int32), indices, 1) is not None
    assert result(module, np.array([1, 2, 4], np.int32), indices, 1) is None
    assert result(module, np.array([0, 2, 3], np.int32), indices, 1) is None


def test_a_matrix_without_columns_is_accepted_if_it_has_no_elements():
    module = lowered()
    none = np.zeros(0, np.int32)
    assert result(module, np.zeros(20, np.int32), none, 0) is not None
    assert result(module, np.array([0, 1], np.int32), np.zeros(1, np.int32), 0) is None


@pytest.mark.parametrize(
    "change",
    [
        {"attribute": '"other": True'},
        {"facts": "T.assume(sorted_segments(C, P))"},
        {"rows": "1, m"},
        {"index": "T.int64(C[T.max(T.int64(P[i]) + j - 1, 0)])"},
        {"index": "T.int64(C[T.int64(P[0]) + j])"},
        {"index": "T.int64(C[j])", "loop": "for j in T.serial(nnz)"},
        {"loop": "for j in T.serial(T.int64(P[m]) - T.int64(P[i]))"},
    ],
    ids=["no request", "another fact", "not all rows", "the row before", "the first row", "all rows",
         "up to the last row"],
)  # fmt: skip
def test_a_program_is_left_alone_unless_each_row_is_proved_to_use_its_own_elements(change):
    module = lowered(**change)
    assert facts_of(module) != ()
    assert all(node.buffer != "P" for node in walk(module) if isinstance(node, Guard))
