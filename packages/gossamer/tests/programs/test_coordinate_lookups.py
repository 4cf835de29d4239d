"""Accesses that look up coordinates, at every stage and natively, against dense NumPy in float64."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from masks import KINDS, PATTERNS, csr, data, dcsr, dense_of, ell
from script_runs import assert_everywhere, assert_refused, call, guards, kernels, program, stages

from gossamer_ir.errors import UserError
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.script import parse_module, print_module

pytestmark = pytest.mark.unserialized

SORTED = {", sorted=False, unique=False": ""}
"""The replacement in the script that turns look-ups of one matrix in another into a walk."""
FILLS = {"0.0": 0.0, 'T.float32("nan")': np.nan, 'T.float32("inf")': np.inf, "7.0": 7.0}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_csr_iterated_densely_times_dense(dtype, index, pattern):
    mask = PATTERNS[pattern]
    (m, n), feat = mask.shape, 3
    module = program("csr_dense_iterated_spmm", dtype=dtype, index=index)
    indptr, indices = csr(mask, index)
    a, b = data(len(indices), dtype), data(n * feat, dtype, 3).reshape(n, feat)
    arguments = {
        "a": a, "b": b, "c": np.full((m, feat), np.nan, dtype), "indptr": indptr,
        "indices": indices, "m": m, "n": n, "feat": feat, "nnz": len(a),
    }  # fmt: skip
    assert guards(module) == []
    assert_everywhere(module, arguments, c=dense_of(mask, a, 0) @ b.astype(np.float64))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("changes", [{}, SORTED], ids=["searched", "walked"])
def test_the_coordinates_of_another_matrix(changes, pattern, fill):
    for other in PATTERNS:
        mine, theirs = PATTERNS[pattern], PATTERNS[other]
        if mine.shape != theirs.shape:
            continue
        module = program("csr_times_csr_elementwise", fill=fill, changes=changes)
        assert ("_cursor" in print_module(stages(module)[-1])) == bool(changes)
        (indptr_a, indices_a), (indptr_b, indices_b) = csr(mine, "int32"), csr(theirs, "int32")
        a, b = data(len(indices_a), "float32"), data(len(indices_b), "float32", 3)
        arguments = {
            "a": a, "b": b, "c": np.full(len(a), 99, "float32"), "indptr_a": indptr_a,
            "indices_a": indices_a, "indptr_b": indptr_b, "indices_b": indices_b,
            "m": mine.shape[0], "n": mine.shape[1], "nnz_a": len(a), "nnz_b": len(b),
        }  # fmt: skip
        with np.errstate(invalid="ignore"):
            expected = a.astype(np.float64) * dense_of(theirs, b, FILLS[fill])[mine]
        assert guards(module) == []
        assert_everywhere(module, arguments, c=expected)


def test_what_is_iterated_may_be_unsorted_and_hold_duplicates():
    arguments = {
        "a": np.array([1, 2, 3, 4], "float32"), "b": np.array([5, 6], "float32"),
        "c": np.zeros(4, "float32"), "indptr_a": np.array([0, 4], "int32"),
        "indices_a": np.array([3, 1, 3, 0], "int32"), "indptr_b": np.array([0, 2], "int32"),
        "indices_b": np.array([0, 3], "int32"), "m": 1, "n": 4, "nnz_a": 4, "nnz_b": 2,
    }  # fmt: skip
    module = program("csr_times_csr_elementwise", fill="10.0")
    assert_everywhere(module, arguments, c=np.array([6.0, 20, 18, 20]))


# --- blocks


def blocked(mask, rows, columns):
    """The blocks with an element, after padding rows and columns to whole blocks."""
    m, n = mask.shape
    mb, nb = max(1, -(-m // rows)), max(1, -(-n // columns))
    padded = np.zeros((mb * rows, nb * columns), bool)
    padded[:m, :n] = mask
    return padded, padded.reshape(mb, rows, nb, columns).any(axis=(1, 3))


def blocks_case(mask, rows, columns, *, dtype, index):
    padded, blocks = blocked(mask, rows, columns)
    (indptr, indices), (indptr_b, indices_b) = csr(padded, index), csr(blocks, index)
    return padded, blocks, {
        "a": data(len(indices), dtype), "indptr": indptr, "indices": indices,
        "b": np.full((len(indices_b), rows, columns), 55, dtype),
        "indptr_b": indptr_b, "indices_b": indices_b,
        "m": padded.shape[0], "n": padded.shape[1], "nnz": len(indices),
        "mb": blocks.shape[0], "nb": blocks.shape[1], "nnzb": len(indices_b),
        "rows": rows, "columns": columns,
    }  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (4, 2)])
def test_csr_to_blocks(pattern, dtype, index, rows, columns):
    padded, blocks, arguments = blocks_case(
        PATTERNS[pattern], rows, columns, dtype=dtype, index=index
    )
    whole = dense_of(padded, arguments["a"], 0)
    (mb, nb) = blocks.shape
    expected = whole.reshape(mb, rows, nb, columns).swapaxes(1, 2)[blocks]
    module = program("csr_to_bsr", dtype=dtype, index=index)
    assert_everywhere(module, arguments, b=expected)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("fill", ["0.0", 'T.float32("nan")'])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (4, 2)])
def test_blocks_to_csr(pattern, fill, rows, columns):
    padded, blocks, arguments = blocks_case(
        PATTERNS[pattern], rows, columns, dtype="float32", index="int32"
    )
    kept = blocks & (np.arange(blocks.size).reshape(blocks.shape) % 3 != 1)
    indptr_b, indices_b = csr(kept, "int32")
    b = data(kept.sum() * rows * columns, "float32").reshape(-1, rows, columns)
    arguments |= {
        "b": b, "indptr_b": indptr_b, "indices_b": indices_b, "nnzb": len(indices_b),
        "a": np.full(len(arguments["a"]), 99, "float32"),
    }  # fmt: skip
    (mb, nb) = blocks.shape
    whole = np.full((mb, nb, rows, columns), FILLS[fill])
    whole[kept] = b
    expected = whole.swapaxes(1, 2).reshape(padded.shape)[padded]
    assert_everywhere(program("bsr_to_csr", fill=fill), arguments, a=expected)


# --- padding, ragged rows, several levels


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("fill", FILLS)
def test_padding_is_never_found(pattern, fill):
    mask = PATTERNS[pattern]
    m, n = mask.shape
    values = data(mask.sum(), "float32", 3)
    indices, a = ell(mask, values, "int32")
    x = data(n + 2, "float32")
    whole = np.full((m, n + 2), FILLS[fill])
    whole[:, 1 : n + 1][mask] = values
    with np.errstate(invalid="ignore"):
        expected = (whole * x.astype(np.float64)).sum(axis=1)
    arguments = {
        "a": a, "x": x, "y": np.zeros(m, "float32"), "indices": indices,
        "m": m, "n": n, "width": indices.shape[1],
    }  # fmt: skip
    module = program("ell_dense_iterated_spmv", fill=fill)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)


@pytest.mark.parametrize("lengths", [[], [0, 0], [0, 3, 1, 0], [5], [1, 2, 3, 4, 0]])
@pytest.mark.parametrize("fill", FILLS)
def test_a_position_beyond_a_ragged_row_is_a_miss(lengths, fill):
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=int)]).astype("int32")
    a, expected = data(indptr[-1], "float32"), []
    for low, high in pairwise(indptr):
        row = np.pad(a[low:high].astype(float), (1, 2), constant_values=FILLS[fill])
        expected += list(row[:-3] + row[1:-2] * 2 + row[3:])
    arguments = {
        "a": a, "y": np.zeros_like(a), "indptr": indptr, "m": len(lengths),
        "longest": max(lengths, default=0), "nnz": len(a),
    }  # fmt: skip
    module = program("ragged_stencil", fill=fill)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=np.array(expected, float))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("fill", FILLS)
def test_a_miss_at_an_outer_level_is_a_miss(pattern, fill):
    mask = PATTERNS[pattern]
    arguments = dcsr(mask, keeps=lambda rows: rows % 3 == 0)
    a, x = data(arguments["nnz"], "float32"), data(mask.shape[1], "float32", 3)
    arguments |= {"a": a, "x": x, "y": np.full(mask.shape[0], 99, "float32")}
    with np.errstate(invalid="ignore"):
        expected = (dense_of(mask, a, FILLS[fill]) * x.astype(np.float64)).sum(axis=1)
    module = program("dcsr_dense_iterated_spmv", fill=fill)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)


# --- stores


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_store_to_elements_that_are_there(pattern):
    mask = PATTERNS[pattern]
    arguments = dcsr(mask, keeps=lambda rows: rows % 3 == 0)
    x = dense_of(mask, data(arguments["nnz"], "float32") * 2 + 1, 0)
    arguments |= {"a": np.full(arguments["nnz"], 99, "float32"), "x": x.astype("float32")}
    assert_everywhere(program("dense_to_dcsr"), arguments, a=x[mask])


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (1, 5), (6, 5), (6, 0)])
def test_a_store_to_an_absent_element_is_refused_by_name(place):
    mask = PATTERNS["empty rows at both ends"]
    arguments = dcsr(mask, keeps=lambda rows: rows == 6)
    x = np.zeros(mask.shape, "float32")
    x[place] = 1
    if mask[place]:
        place = None
    arguments |= {"a": np.zeros(arguments["nnz"], "float32"), "x": x}
    assert_fails(program("dense_to_dcsr"), arguments, buffer="A", fails=place is not None)


def assert_fails(module, arguments, *, buffer, fails=True):
    for stage in stages(module):
        if not fails:
            run(stage, arguments)
            continue
        with pytest.raises(InterpreterError) as caught:
            run(stage, arguments)
        assert isinstance(caught.value, GuardFailed)
        assert caught.value.buffer in (buffer, f"{buffer}_data")
    for kernel in kernels(module):
        if fails:
            with pytest.raises(UserError, match=f"accessed '{buffer}_data' out of bounds"):
                call(kernel, arguments)
        else:
            call(kernel, arguments)


def scatter(small, large):
    (indptr_a, indices_a), (indptr_c, indices_c) = csr(small, "int32"), csr(large, "int32")
    return {
        "a": data(len(indices_a), "float32"), "c": data(len(indices_c), "float32", 3),
        "indptr_a": indptr_a, "indices_a": indices_a, "indptr_c": indptr_c,
        "indices_c": indices_c, "m": small.shape[0], "n": small.shape[1],
        "nnz_a": len(indices_a), "nnz_c": len(indices_c),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("small", "large"),
    [
        pair
        for pair in product(PATTERNS, repeat=2)
        if len({PATTERNS[one].shape for one in pair}) == 1
    ],
)
def test_scatter_into_another_pattern(small, large):
    small, large = PATTERNS[small], PATTERNS[large]
    arguments, module = scatter(small, large), program("csr_into_superset")
    if (small & ~large).any():
        assert_fails(module, arguments, buffer="C")
        return
    sums = dense_of(large, arguments["c"], 0) + dense_of(small, arguments["a"], 0)
    assert_everywhere(module, arguments, c=sums[large])


ROWS_OF_ITS_OWN = {
    "J2 = T.sp.compressed_varied(I,": "H = T.sp.dense_fixed(m)\n    J2 = T.sp.compressed_varied(H,",
    "(I, J2)": "(H, J2)",
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"subset(J1, J2)": "covers(J2, J1)"}, ROWS_OF_ITS_OWN],
    ids=["subset", "covers", "below other rows"],
)
@pytest.mark.parametrize("small", PATTERNS)
def test_no_test_for_a_miss_where_a_subset_is_declared(changes, small):
    module = program("csr_into_declared_superset", changes=changes)
    assert guards(module) == []
    assert "search" in print_module(stages(module)[2])
    for large in PATTERNS.values():
        mask = PATTERNS[small]
        if mask.shape != large.shape:
            continue
        arguments = scatter(mask, large)
        if not (mask & ~large).any():
            sums = dense_of(large, arguments["c"], 0) + dense_of(mask, arguments["a"], 0)
            assert_everywhere(module, arguments, c=sums[large])
            continue
        for kernel in kernels(module):
            with pytest.raises(
                UserError, match=r"'indices_a' is .* not in its segment of 'indices_c'"
            ):
                call(kernel, arguments)


def test_a_subset_is_looked_at_where_the_arrays_were_checked_one_by_one():
    kernel, _ = kernels(program("csr_into_declared_superset"))
    arguments = scatter(PATTERNS["all"], PATTERNS["checkered"])
    with pytest.raises(UserError, match="not in its segment"):
        kernel.bind(**arguments, verified=[param.name for param in kernel.signature.buffers])


TWO_TREES = """
@T.prim_func
def main(b: T.handle, y: T.handle, p: T.handle, q: T.handle, r: T.handle, m: T.int64,
         rows: T.int64, n: T.int64, w: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2, "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, w, p)
    X = T.sp.dense_fixed(rows)
    K = T.sp.compressed_varied(X, n, (q, r))
    W = T.sp.dense_fixed(w)
    B = T.sp.match_buffer(b, (I, J, X, K), "float32", default=9.0)
    Y = T.sp.match_buffer(y, (W,), "float32")
    with T.sp.iteration([W], "S", "x") as [i]:
        Y[i] = B[0, i, i, 1] + B[0, i, i, 1]
"""


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_nothing_is_read_to_look_up_what_is_absent_already(length):
    """Rows 2, 3, ... of the second tree do not exist, nor do positions beyond those of the first tree."""
    arguments = {
        "b": np.arange(length * 2, dtype=np.float32), "y": np.zeros(5, np.float32),
        "p": np.array([0, length], np.int32), "q": np.array([0, 1, 2], np.int32),
        "r": np.array([1, 1], np.int32), "m": 1, "rows": 2, "n": 3, "w": 5,
    }  # fmt: skip
    module = parse_module(TWO_TREES)
    if length == 3:
        assert_refused(module, arguments, match="out of bounds")
        return
    expected = [2 * (2 * i + i) if i < length else 18 for i in range(5)]
    assert_everywhere(module, arguments, y=np.array(expected, float))
