"""Published programs (products over formats, sums, element-wise programs, graph convolutions) at every
stage and natively, against NumPy in float64.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from masks import KINDS, PATTERNS, csr, data, dcsr, dense_of, ell, nothing, offsets
from msgspec.structs import replace
from script_runs import assert_everywhere, assert_refused, guards, program

from gossamer_ir.traversal.equality import structural_equal
from gossamer_testkit import script_names

pytestmark = pytest.mark.unserialized

OTHER_PROGRAM = ("argmin_rows_paper", "sparse_softmax_paper")
"""The scripts that differ from all other scripts of the same name."""


@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(
    "name",
    [name for name in script_names() if name.endswith("_paper") and name not in OTHER_PROGRAM],
)
def test_both_spellings_are_one_program(name, dtype, index):
    """Other tests run one of the two spellings."""
    spelled, other = (
        replace(program, entry="f", functions=(replace(program.functions[0], name="f"),))
        for program in (
            program(spelling, dtype=dtype, index=index)
            for spelling in (name, name.removesuffix("_paper"))
        )
    )
    assert structural_equal(spelled, other)


# --- a matrix times a dense one


def operands(mask, feat, dtype):
    """Values, a dense matrix with NaN in rows that no element refers to, and the product."""
    a, b = data(mask.sum(), dtype), data((mask.shape[1], feat), dtype, 3)
    product = dense_of(mask, a) @ b.astype(np.float64)
    b[~mask.any(axis=0)] = np.nan
    return a, b, product


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("feat", [0, 1, 5])
def test_csr_times_dense(feat, dtype, index, pattern):
    mask = PATTERNS[pattern]
    (indptr, indices), (a, b, product) = csr(mask, index), operands(mask, feat, dtype)
    arguments = {
        "a": a, "b": b, "c": nothing(product.shape, dtype), "indptr": indptr, "indices": indices,
        "m": mask.shape[0], "n": mask.shape[1], "feat_size": feat, "nnz": len(a),
    }  # fmt: skip
    module = program("csr_spmm", dtype=dtype, index=index)
    assert_everywhere(module, arguments, c=product)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("feat", [0, 1, 5])
def test_ell_times_dense(feat, dtype, index, pattern):
    mask = PATTERNS[pattern]
    a, b, product = operands(mask, feat, dtype)
    indices, slots = ell(mask, a, index)
    arguments = {
        "a": slots, "b": b, "c": nothing(product.shape, dtype), "indices": indices,
        "m": mask.shape[0], "n": mask.shape[1], "width": indices.shape[1], "feat_size": feat,
    }  # fmt: skip
    assert_everywhere(program("ell_spmm", dtype=dtype, index=index), arguments, c=product)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("feat", [0, 1, 5])
def test_stored_rows_times_dense(feat, dtype, index, pattern):
    mask = PATTERNS[pattern]
    rows = dcsr(mask, index, keeps=lambda row: row % 3 == 0)
    a, b, product = operands(mask, feat, dtype)
    expected = np.full(product.shape, -77.0)
    expected[rows["indices_i"]] = product[rows["indices_i"]]
    arguments = {"a": a, "b": b, "c": np.full(product.shape, -77, dtype), "feat_size": feat, **rows}
    assert_everywhere(program("dcsr_spmm", dtype=dtype, index=index), arguments, c=expected)


# --- blocks times a dense matrix


def block_operands(mask, blk, feat, dtype):
    """Blocks, a dense matrix with NaN in rows that no block refers to, and the product."""
    (nb, mb), columns = mask.shape, np.nonzero(mask)[1]
    a, b = data((mask.sum(), blk, blk), dtype), data((mb, blk, feat), dtype, 3)
    product = np.zeros((nb, blk, feat))
    np.add.at(product, np.nonzero(mask)[0], a.astype(np.float64) @ b.astype(np.float64)[columns])
    b[~mask.any(axis=0)] = np.nan
    return a, b, product


BSR = ["bsr_spmm", "bsr_spmm_position"]
LOOPS = ["bsr_spmm_loop", "bsr_spmm_loop_flattened"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(("blk", "feat"), [(1, 1), (2, 0), (3, 2), (2, 5)])
@pytest.mark.parametrize("name", [*BSR, *LOOPS])
def test_blocks_times_dense(name, blk, feat, dtype, index, pattern):
    mask, index = PATTERNS[pattern], index if name in BSR else "int32"
    (indptr, indices), (a, b, product) = csr(mask, index), block_operands(mask, blk, feat, dtype)
    arguments = {
        "a": a, "b": b, "c": nothing(product.shape, dtype), "indptr": indptr,
        "indices": indices, "nb": mask.shape[0], "mb": mask.shape[1], "nnzb": len(a), "blk": blk,
        "feat_size": feat,
    }  # fmt: skip
    if name.endswith("flattened"):
        arguments |= {key: arguments[key].reshape(-1) for key in "abc"}
    module = program(name, dtype=dtype, index=index)
    assert (guards(module) == []) == (name in BSR)
    assert_everywhere(module, arguments, c=product)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize(("blk", "feat"), [(1, 1), (3, 2), (2, 5)])
def test_stored_rows_of_blocks_times_dense(blk, feat, dtype, index, pattern):
    mask = PATTERNS[pattern]
    rows = dcsr(mask, index, keeps=lambda row: row % 3 == 0)
    a, b, product = block_operands(mask, blk, feat, dtype)
    expected = np.full(product.shape, -77.0)
    expected[rows["indices_i"]] = product[rows["indices_i"]]
    arguments = {
        "a": a, "b": b, "c": np.full(product.shape, -77, dtype), **rows, "nb": mask.shape[0],
        "mb": mask.shape[1], "nnzb": len(a), "blk": blk, "feat_size": feat,
    }  # fmt: skip
    assert_everywhere(program("dbsr_spmm", dtype=dtype, index=index), arguments, c=expected)


# --- one program of six iterations: a matrix is copied to blocks of three sizes, each is multiplied


def in_blocks(mask, size, rows):
    """The blocks of the first rows that have elements."""
    m, n = rows, mask.shape[1] // size * size
    return mask[:m, :n].reshape(m // size, size, n // size, size).any(axis=(1, 3))


def block_copies(shape, rows):
    """The arguments, and the expected result: rows that some part visits are initialized once, and the parts
    are added."""
    (m, n), feat = shape, 2
    mask = np.add.outer(np.arange(m) * 3, np.arange(n) * 7) % 11 == 1
    mask[8:40, :50] = False
    mask[50:] = False
    indptr, indices = csr(mask, "int32")
    a, b = data(mask.sum(), "float32"), data((n, feat), "float32", 3)
    whole = dense_of(mask, a)
    arguments = {
        "a": a, "b": b, "c": np.full((m, feat), -77, "float32"), "indptr": indptr,
        "indices": indices, "m": m, "n": n, "feat_size": feat, "nnz": len(a),
    }  # fmt: skip
    expected = {"c": np.full((m, feat), -77.0)}
    expected["c"][: max(rows)] = 0
    for size, visited in zip((4, 16, 32), rows, strict=True):
        blocks = in_blocks(mask, size, visited) & (np.arange(n // size) != 1)
        tiles = whole[:visited].reshape(len(blocks), size, n // size, size).swapaxes(1, 2)
        kept = np.where(blocks[:, :, None, None], tiles, 0).swapaxes(1, 2).reshape(visited, n)
        expected |= {f"a_{size}": tiles[blocks]}
        expected["c"][:visited] += kept @ b.astype(np.float64)
        names = (f"indptr_{size}", f"indices_{size}")
        arguments |= dict(zip(names, csr(blocks, "int32"), strict=True))
        arguments |= {f"m_{size}": len(blocks), f"n_{size}": n // size, f"nnz_{size}": blocks.sum()}
        arguments |= {f"a_{size}": nothing((blocks.sum(), size, size), "float32")}
    arguments |= {key: int(value) for key, value in arguments.items() if np.ndim(value) == 0}
    return arguments, expected


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ((0, 0), (0, 0, 0)),
        ((8, 12), (8, 0, 0)),
        ((64, 64), (64, 64, 64)),
        ((32, 64), (28, 16, 0)),
    ],
)
def test_copies_in_blocks_of_three_sizes(shape, rows):
    arguments, expected = block_copies(shape, rows)
    assert_everywhere(program("csr_spmm_by_blocks"), arguments, **expected)


def test_blocks_that_reach_beyond_the_matrix_are_refused():
    arguments, _ = block_copies((64, 96), (64, 0, 0))
    shorter = {"m": 62, "indptr": arguments["indptr"][:63], "c": arguments["c"][:62]}
    assert_refused(
        program("csr_spmm_by_blocks"), arguments | shorter, match="'C_data' out of bounds"
    )


# --- one number for each row or element


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", ["csr_reduce", "segment_reduce", "csr_scaled"])
def test_rows_and_elements(name, dtype, index, pattern):
    mask = PATTERNS[pattern]
    (indptr, indices), a = csr(mask, index), data(mask.sum(), dtype)
    expected = a * 2.5 if name == "csr_scaled" else dense_of(mask, a).sum(axis=1)
    arguments = {
        "a": a, "b": nothing(expected.shape, dtype), "indptr": indptr, "indices": indices,
        "m": mask.shape[0], "n": mask.shape[1], "nnz": len(a),
    }  # fmt: skip
    assert_everywhere(program(name, dtype=dtype, index=index), arguments, b=expected)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("feat", [0, 1, 5])
@pytest.mark.parametrize("name", ["sddmm", "sddmm_fused"])
def test_sampled_products(name, feat, dtype, index, pattern):
    mask = PATTERNS[pattern]
    (indptr, indices), x = csr(mask, index), data(mask.sum(), dtype)
    a, b = data((mask.shape[0], feat), dtype, 3), data((mask.shape[1], feat), dtype, 4)
    expected = (a.astype(np.float64) @ b.astype(np.float64).T)[mask] * x
    arguments = {
        "a": a, "b": b, "x": x, "y": nothing(x.shape, dtype), "indptr": indptr,
        "indices": indices, "m": mask.shape[0], "n": mask.shape[1], "feat_size": feat,
        "nnz": len(x),
    }  # fmt: skip
    module = program(name, dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)


# --- ragged tensors of four levels

LENGTHS = {
    "no rows": ([], [], []),
    "nothing": ([0, 0], [], []),
    "empty fibers": ([0, 3, 0, 1, 0], [0, 2, 0, 3], [0, 0, 4, 1, 0]),
    "nothing below": ([2, 1], [0, 0, 0], []),
    "one long fiber": ([1], [1], [20]),
    "mixed": ([2, 0, 3], [1, 3, 0, 2, 2], [2, 0, 5, 1, 0, 3, 1, 4]),
}


def sums_of(values, starts):
    return np.array([values[low:high].sum() for low, high in pairwise(starts)], float)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_sums_of_fused_ragged_fibers(dtype, index, lengths):
    levels = LENGTHS[lengths]
    starts = [offsets(level, index) for level in levels]
    x = data(sum(levels[2]), dtype)
    sums_over_three = sums_of(x.astype(np.float64), starts[2])
    arguments = {"x": x, "n": len(levels[0])}
    for name, level, starts_of_level in zip("jkl", levels, starts, strict=True):
        sizes = {f"most_{name}": max(level, default=0), f"nnz_{name}": sum(level)}
        arguments |= {f"indptr_{name}": starts_of_level, **sizes}
    for name, expected in (
        ("three", sums_over_three),
        ("two", sums_of(sums_over_three, starts[1])),
    ):
        module = program(f"ragged_sums_{name}_fused", dtype=dtype, index=index)
        assert guards(module) == []
        arguments |= {"y": nothing(expected.shape, dtype)}
        assert_everywhere(module, arguments, y=expected)


# --- graph convolutions


def convolution(mask, relations, dtype, index, *, transposed):
    """Features, weights of each relation, and the arguments that both programs have."""
    n, feat_in, feat_out = mask.shape[-1], 3, 2
    w = data((relations, feat_out, feat_in), dtype, 3)
    x = data((n, feat_in), dtype, 4)
    arguments = {
        "w": w.swapaxes(1, 2).copy() if transposed else w, "x": x, "n": n, "r": relations,
        "feat_in": feat_in, "feat_out": feat_out, "y": nothing((n, feat_out), dtype),
    }  # fmt: skip
    return arguments, x.astype(np.float64) @ w.astype(np.float64).swapaxes(1, 2)


def square(pattern):
    mask = PATTERNS[pattern]
    return mask[: mask.shape[1], : mask.shape[0]]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_convolution_of_edges_of_several_kinds(dtype, index, pattern):
    mask, relations = square(pattern), 3
    arguments, features = convolution(mask, relations, dtype, index, transposed=False)
    indptr, indices = csr(mask, index)
    rows, columns = np.nonzero(mask)
    etype = (np.arange(len(rows)) * 2 % relations).astype("int32")
    expected = np.zeros(arguments["y"].shape)
    np.add.at(expected, rows, features[etype, columns])
    arguments |= {"etype": etype, "indptr": indptr, "indices": indices, "nnz": len(rows)}
    module = program("rgcn_homogeneous", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)


@pytest.mark.parametrize("bad", [-1, 3])
@pytest.mark.parametrize("is_stated", [True, False])
def test_a_relation_that_is_not_there_is_refused(is_stated, bad):
    mask = square("checkered")
    arguments, _ = convolution(mask, 3, "float32", "int32", transposed=False)
    indptr, indices = csr(mask, "int32")
    etype = np.zeros(len(indices), "int32")
    etype[4] = bad
    arguments |= {"etype": etype, "indptr": indptr, "indices": indices, "nnz": len(indices)}
    stated = "    T.assume_buffer_domain(E, [0, r])\n"
    module = program("rgcn_homogeneous", changes={} if is_stated else {stated: ""})
    assert_refused(module, arguments, match="'etype'" if is_stated else "'W_data' out of bounds")


def relation_masks():
    for relations in (0, 1, 3):
        yield f"{relations} relations, no nodes", np.zeros((relations, 0, 0), bool)
        yield f"{relations} relations, no edges", np.zeros((relations, 5, 5), bool)
    some = np.indices((4, 5, 5)).sum(axis=0) % 3 == 1
    some[[0, 2]] = False
    some[:, 0] = some[1, 3] = False
    yield "empty relations and rows", some
    yield "all", np.ones((3, 4, 4), bool)


RELATIONS = dict(relation_masks())


@pytest.mark.parametrize("relations", RELATIONS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_convolution_of_several_graphs(dtype, index, relations):
    """Nodes that no relation stores keep the passed values; nodes of several relations are summed."""
    mask = RELATIONS[relations]
    arguments, features = convolution(mask, len(mask), dtype, index, transposed=True)
    stored = mask.any(axis=2)
    stored |= np.arange(stored.size).reshape(stored.shape) % 4 == 3
    (indptr_i, indices_i), (indptr_j, indices_j) = csr(stored, index), csr(mask[stored], index)
    a = data(mask.sum(), dtype)
    arguments |= {
        "a": a, "indptr_i": indptr_i, "indices_i": indices_i, "indptr_j": indptr_j,
        "indices_j": indices_j, "nnz_i": len(indices_i), "nnz_j": len(a),
        "n": mask.shape[1], "y": np.full((mask.shape[1], 2), -77, dtype),
    }  # fmt: skip
    sums = (dense_of(mask, a) @ features).sum(axis=0)
    expected = np.where(stored.any(axis=0)[:, None], sums, -77.0)
    module = program("rgcn_heterogeneous", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, y=expected)


# --- matrices of different sizes, whose rows are fibers of their own


def rectangles(rng, counts, most):
    """Ragged matrices: for each count as many rows of up to `most` elements."""
    return [
        [list(rng.integers(-5, 6, rng.integers(0, most + 1))) for _ in range(count)]
        for count in counts
    ]


@pytest.mark.parametrize(
    "counts", [[], [(0, 0)], [(2, 0), (0, 3), (3, 2)], [(1, 1), (4, 3), (0, 0)]]
)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_products_of_matrices_with_ragged_rows(dtype, index, counts):
    """An element that one of the two rows lacks is absent, whichever row it is."""
    rng = np.random.default_rng(len(counts))
    x, z = (rectangles(rng, [rows for rows, _ in counts], most) for most in (5, 4))
    y = rectangles(rng, [inner for _, inner in counts], 4)
    expected = [
        sum(left * at(second, j, k) for j, left in enumerate(x_row))
        for first, second, result in zip(x, y, z, strict=True)
        for x_row, z_row in zip(first, result, strict=True)
        for k in range(len(z_row))
    ]
    arguments = {
        "batch": len(counts), "most_i": max((len(rows) for rows in x), default=0),
        "most_j": 5, "most_k": 4, "nnz_i": sum(map(len, x)), "nnz_j": sum(map(len, y)),
        "indptr_i": offsets([len(rows) for rows in x], index),
        "indptr_j": offsets([len(rows) for rows in y], index),
    }  # fmt: skip
    for name, axes, dense in (("x", "ij", x), ("y", "jk", y), ("z", "ik", z)):
        rows = [row for matrix in dense for row in matrix]
        values = np.array([value for row in rows for value in row], dtype)
        lengths = offsets(list(map(len, rows)), index)
        arguments |= {name: values, f"indptr_{axes}": lengths, f"nnz_{axes}": len(values)}
    arguments["z"][:] = np.nan
    module = program("irregular_batched_matmul_of_trees", dtype=dtype, index=index)
    assert guards(module) == []
    assert_everywhere(module, arguments, z=np.array(expected, float))


def at(matrix, row, column):
    return matrix[row][column] if row < len(matrix) and column < len(matrix[row]) else 0
