"""Attached axes, sibling axes, nested and sequential iterations and trees of three levels, at every stage
and natively, against dense NumPy in float64.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from masks import KINDS, csr, data, dense_of, offsets
from script_runs import assert_everywhere, call, guards, kernels, program, results, stages

from gossamer_ir.errors import UserError
from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.script import parse_module

pytestmark = pytest.mark.unserialized

SPELLINGS = ["", "_paper"]


def tensors():
    """Sparsity patterns of three-dimensional tensors."""
    shape = (5, 4, 6)
    none = np.zeros(shape, bool)
    yield "no rows", np.zeros((0, 4, 6), bool)
    yield "no columns", np.zeros((5, 0, 6), bool)
    yield "no depth", np.zeros((5, 4, 0), bool)
    yield "no elements", none
    some = none.copy()
    some[[1, 1, 1, 3, 3], [0, 0, 3, 1, 2], [0, 5, 2, 0, 3]] = True
    yield "empty at both ends", some
    dense = none.copy()
    dense[2] = True
    yield "a dense slice", dense
    yield "all", ~none
    yield "checkered", np.indices(shape).sum(axis=0) % 2 == 0


TENSORS = dict(tensors())


def csf(mask, index, *, names="jk", also=False):
    """The three levels of a mask; `also`: some fibers without elements are stored as well."""
    outer = mask.any(axis=2)
    if also:
        outer |= np.arange(outer.size).reshape(outer.shape) % 3 == 0
    second, third = names
    indptr_j, indices_j = csr(outer, index)
    indptr_k, indices_k = csr(mask[outer], index)
    return outer, {
        f"indptr_{second}": indptr_j, f"indices_{second}": indices_j,
        f"indptr_{third}": indptr_k, f"indices_{third}": indices_k,
        f"nnz_{second}": len(indices_j), f"nnz_{third}": len(indices_k),
        **dict(zip("mnp", mask.shape, strict=True)),
    }  # fmt: skip


# --- trees of three levels


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_square_sums_of_a_tree(tensor, dtype, index):
    mask = TENSORS[tensor]
    _, arguments = csf(mask, index, also=True)
    a = data(mask.sum(), dtype)
    arguments |= {"a": a, "b": np.full(len(mask), np.nan, dtype)}
    module = program("csf_square_sum", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, b=(dense_of(mask, a) ** 2).sum(axis=(1, 2)))


@pytest.mark.parametrize("mine", TENSORS)
@pytest.mark.parametrize("fill", ["0.0", 'T.float32("inf")', "3.0"])
def test_square_sums_over_another_tree(mine, fill):
    module = program("csf_square_sum_over_another_tree", fill=fill)
    assert guards(module) == []
    for other in TENSORS:
        mask, walked = TENSORS[mine], TENSORS[other]
        if mask.shape != walked.shape:
            continue
        _, tree = csf(mask, "int32", also=True)
        _, over = csf(walked, "int32", names="qr", also=True)
        a = data(mask.sum(), "float32")
        arguments = {**tree, **over, "a": a, "b": np.full(len(mask), np.nan, "float32")}
        dense = dense_of(mask, a, np.inf if "inf" in fill else float(fill))
        expected = np.where(walked, dense, 0) ** 2
        assert_everywhere(module, arguments, b=expected.sum(axis=(1, 2)))


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_products_of_a_tree_with_matrices(tensor, dtype, index):
    mask, feat = TENSORS[tensor], 3
    outer, arguments = csf(mask, index, also=True)
    a = data(mask.sum(), dtype)
    b, c = data((mask.shape[1], feat), dtype, 3), data((mask.shape[2], feat), dtype, 4)
    arguments |= {"a": a, "b": b, "c": c, "feat": feat}
    dense, wide = dense_of(mask, a), c.astype(np.float64)
    for name, shape, expected in (
        ("csf_mttkrp", (len(mask), feat), np.einsum("ijk,jf,kf->if", dense, b, wide)),
        ("csf_ttm", (outer.sum(), feat), np.einsum("ijk,kf->ijf", dense, wide)[outer]),
    ):
        module = program(name, dtype=dtype, index=index)
        assert guards(module) == []
        assert_everywhere(module, arguments | {"y": np.full(shape, np.nan, dtype)}, y=expected)


@pytest.mark.parametrize("lengths", [[], [0], [0, 2, 0], [3, 0, 1, 0], [0, 0, 5]])
@pytest.mark.parametrize("feat", [0, 1, 3])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_axes_that_stand_between_a_varied_one_and_its_parents(lengths, feat, dtype, index):
    n, rows = 4, sum(lengths)
    mask = np.add.outer(np.arange(rows), np.arange(n)) % 3 == 1
    mask[:1] = False
    indptr_i, (indptr_j, indices_j) = offsets(lengths, index), csr(mask, index)
    values = data((feat, mask.sum()), dtype)
    y, z = [], []
    for first, last in pairwise(indptr_i):
        y += list(values[:, indptr_j[first] : indptr_j[last]].ravel())
        for row in range(first, last):
            z += list(values[:, indptr_j[row] : indptr_j[row + 1]].ravel())
    arguments = {
        "x": values.ravel(), "y": np.full(values.size, np.nan, dtype),
        "z": np.full(values.size, np.nan, dtype), "indptr_i": indptr_i, "indptr_j": indptr_j,
        "indices_j": indices_j, "batch": len(lengths), "most": max(lengths, default=0), "n": n,
        "feat": feat,
    }  # fmt: skip
    module = program("features_between_levels", dtype=dtype, index=index)
    assert_everywhere(module, arguments, y=np.array(y, float), z=np.array(z, float))


# --- attached axes


def incidences():
    yield "nothing", np.zeros((0, 0), bool)
    yield "no members", np.zeros((4, 3), bool)
    ends = np.zeros((6, 4), bool)
    ends[[1, 1, 2, 4], [0, 2, 2, 2]] = True
    yield "empty at both ends", ends
    yield "all", np.ones((4, 5), bool)
    dense = ends.copy()
    dense[3] = True
    yield "a member of all", dense


INCIDENCES = dict(incidences())


@pytest.mark.parametrize("incidence", INCIDENCES)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_gather_over_hyperedges(incidence, dtype, index):
    mask, feat = INCIDENCES[incidence], 3
    (indptr, indices), (indptr_t, indices_t) = csr(mask, index), csr(mask.T, index)
    x = data((len(mask), feat), dtype)
    arguments = {
        "x": x, "y": np.full(x.shape, np.nan, dtype), "indptr": indptr, "indices": indices,
        "indptr_t": indptr_t, "indices_t": indices_t, "n": mask.shape[0], "m": mask.shape[1],
        "nnz": len(indices), "feat": feat,
    }  # fmt: skip
    module = program("hypergraph_gather", dtype=dtype, index=index)
    wide = mask.astype(np.float64)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=wide @ wide.T @ x.astype(np.float64))


@pytest.mark.parametrize("left", INCIDENCES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_fibers_of_stored_rows_are_attached_where_they_are_stored(left, index):
    mask = INCIDENCES[left]
    (m, n), p = mask.shape, 5
    other = np.add.outer(np.arange(n) * 2, np.arange(p)) % 3 == 0
    other[1:2] = False
    stored = np.flatnonzero(other.any(axis=1) & (np.arange(n) != 2))
    other[np.setdiff1d(np.arange(n), stored)] = False
    (indptr, indices), (indptr_s, indices_s) = csr(mask, index), csr(other[stored], index)
    a, b = data(mask.sum(), "float32"), data(other.sum(), "float32", 3)
    y = data((m, p), "float32", 2)
    arguments = {
        "a": a, "b": b, "y": y, "indptr": indptr, "indices": indices,
        "indptr_r": np.array([0, len(stored)], index), "indices_r": stored.astype(index),
        "indptr_s": indptr_s, "indices_s": indices_s, "m": m, "n": n, "p": p,
        "nnz": len(a), "stored": len(stored), "nnz_s": len(b),
    }  # fmt: skip
    module = program("attached_to_stored_rows", index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=y + dense_of(mask, a) @ dense_of(other, b))


# --- axes side by side

SIZES = {
    "none": [],
    "one": [(2, 3, 4)],
    "empty": [(0, 0, 0), (3, 0, 2), (0, 2, 2), (2, 2, 0), (0, 0, 0)],
    "mixed": [(0, 4, 1), (3, 1, 2), (1, 5, 3), (4, 2, 1), (0, 0, 2)],
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_matrices_of_different_sizes(sizes, dtype, index):
    sizes = np.array(SIZES[sizes], int).reshape(-1, 3)
    i, j, k = sizes.T
    x, y = data((i * j).sum(), dtype), data((j * k).sum(), dtype, 3)
    starts = {f"indptr_{name}": offsets(lengths, index) for name, lengths in
              (("i", i), ("j", j), ("k", k), ("ij", i * j), ("jk", j * k), ("ik", i * k))}  # fmt: skip
    expected = []
    for number, (rows, inner, columns) in enumerate(sizes):
        first = x[starts["indptr_ij"][number] :][: rows * inner].reshape(rows, inner)
        second = y[starts["indptr_jk"][number] :][: inner * columns].reshape(inner, columns)
        expected += list((first.astype(np.float64) @ second).ravel())
    arguments = {
        "x": x, "y": y, "z": np.full(len(expected), np.nan, dtype), **starts, "batch": len(sizes),
        **{f"most_{name}": lengths.max(initial=0) for name, lengths in zip("ijk", (i, j, k), strict=True)},
        **{f"nnz_{name}": lengths.sum() for name, lengths in zip("ijk", (i, j, k), strict=True)},
    }  # fmt: skip
    arguments = {
        name: value if isinstance(value, np.ndarray) else int(value)
        for name, value in arguments.items()
    }
    module = program("irregular_batched_matmul", dtype=dtype, index=index)
    assert_everywhere(module, arguments, z=np.array(expected, float))


# --- nested and sequenced iterations, buffers between them


def row_arguments(mask, dtype, index):
    indptr, indices = csr(mask, index)
    a = data(mask.sum(), dtype)
    return {
        "a": a, "b": np.full(a.shape, np.nan, dtype), "indptr": indptr, "indices": indices,
        "m": mask.shape[0], "n": mask.shape[1], "nnz": len(a),
    }  # fmt: skip


@pytest.mark.parametrize("pattern", INCIDENCES)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_iterations_inside_others_share_buffers(pattern, dtype, index):
    mask = INCIDENCES[pattern]
    arguments = row_arguments(mask, dtype, index)
    a = arguments["a"].astype(np.float64)
    rows = np.nonzero(mask)[0]
    most, least = np.full(len(mask), -np.inf), np.full(len(mask), np.inf)
    np.maximum.at(most, rows, a**2)
    np.minimum.at(least, rows, a**2)
    module = program("rows_scaled_by_most", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, b=a * most[rows] - least[rows])


@pytest.mark.parametrize("pattern", INCIDENCES)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_softmax_of_stored_elements(pattern, spelling, dtype, index):
    mask = INCIDENCES[pattern]
    arguments = row_arguments(mask, dtype, index)
    arguments["a"] = arguments["a"] * 40
    a, rows = arguments["a"].astype(np.float64), np.nonzero(mask)[0]
    most, total = np.full(len(mask), -np.inf), np.zeros(len(mask))
    np.maximum.at(most, rows, a)
    powers = np.exp(a - most[rows])
    np.add.at(total, rows, powers)
    expected = powers / total[rows]
    module = program(f"sparse_softmax{spelling}", dtype=dtype, index=index)
    for way, (result,) in results(module, arguments, "b"):
        bound = 50 * np.finfo(dtype).eps
        np.testing.assert_allclose(result, expected, rtol=bound, atol=bound**4, err_msg=way)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_elements_share_evenly(spelling, dtype):
    lengths = np.array([0, 4, 1, 8, 0, 2, 0])
    arguments = row_arguments(np.arange(9) < lengths[:, None], dtype, "int32")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    arguments["a"] = (rows - 3).astype(dtype)
    assert_everywhere(
        program(f"sparse_softmax{spelling}", dtype=dtype), arguments, b=1.0 / lengths[rows]
    )


# --- positions beyond fixed axes

BEYOND = """
@T.prim_func
def main(x: T.handle, y: T.handle, p: T.handle, m: T.int64, most: T.int64, feat: T.int64,
         shift: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2, "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    F = T.sp.dense_fixed(feat)
    J = T.sp.dense_varied(I, most, p)
    X = T.sp.match_buffer(x, (I, F, J), "float32")
    Y = T.sp.match_buffer(y, (I, F, J), "float32")
    with T.sp.iteration([I, J, F], "SSS", "shifted") as [i, j, f]:
        Y[i, f, j] = X[i, f + shift, j]
"""


@pytest.mark.parametrize("shift", [-1, 0, 1, 3])
def test_a_position_beyond_a_fixed_axis_is_no_other_element(shift):
    module = parse_module(BEYOND)
    x = np.arange(15, dtype=np.float32)
    arguments = {
        "x": x, "y": np.zeros(15, np.float32), "p": np.array([0, 2, 2, 5], np.int32), "m": 3,
        "most": 3, "feat": 3, "shift": shift,
    }  # fmt: skip
    if shift == 0:
        assert_everywhere(module, arguments, y=x.astype(np.float64))
        return
    for stage in stages(module):
        with pytest.raises(InterpreterError) as caught:
            run(stage, arguments)
        assert caught.value.buffer in ("X", "X_data")
    for kernel in kernels(module):
        with pytest.raises(UserError, match="accessed 'X_data' out of bounds"):
            call(kernel, arguments)


ATTACHED = """
@T.prim_func
def main(y: T.handle, q: T.handle, p: T.handle, m: T.int64, n: T.int64, width: T.int64,
         rows: T.int64, most: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2, "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), q)
    R = T.sp.dense_fixed(rows)
    S = T.sp.AXIS
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J, T.sp.attach(S, J)], "SRR", "count") as [i, j, s]:
        Y[i] = Y[i] + 1.0
"""


@pytest.mark.parametrize("rows", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("axis", ["dense_varied(R, most, p)", "dense_fixed(most, parent=R)"])
def test_nothing_is_attached_to_padding_or_beyond_the_parent(axis, rows):
    indices = np.array([[0, 3, 4], [4, 4, 4], [1, 2, 3]], np.int32)
    lengths = np.arange(rows) % 3
    arguments = {
        "y": np.zeros(3, np.float32), "q": indices, "p": offsets(lengths, "int32"), "m": 3, "n": 4,
        "width": 3, "rows": rows, "most": 2,
    }  # fmt: skip
    counts = lengths if "varied" in axis else np.full(rows, 2)
    expected = [sum(counts[j] for j in row if j < min(rows, 4)) for row in indices]
    module = parse_module(ATTACHED.replace("AXIS", axis))
    if "fixed" in axis:
        module = parse_module(ATTACHED.replace("AXIS", axis).replace("p: T.handle, ", ""))
    assert guards(module) == []
    assert_everywhere(module, arguments, y=np.array(expected, float))
