"""Operators with a matrix in parts, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operators.spmm import SCRIPT
from gossamer.operators.spmv import SCRIPT as SPMV
from gossamer_formats import csr
from gossamer_formats.descriptions.coo import coo
from gossamer_ir.errors import ArgumentError, FormatError

BLOCKS = {"block_rows": 4, "block_columns": 4}
DECOMPOSITIONS = {
    "hyb": ("hyb", {}),
    "partitions": ("hyb", {"c": 3, "k": 1}),
    "wide": ("hyb", {"c": 99, "k": 9}),
    "blocks": ([("bsr", lambda i, j: (i // 4 + j // 4) % 2 == 0, BLOCKS), "csr"], {}),
    "described": ([(coo(), lambda i, j: j < 5), csr()], {}),
    "band": ([("dia", lambda i, j: abs(i - j) < 3), ("coo", lambda i, j: j < 5), "sell"], {}),
}


def matrix(shape=(50, 40), dtype=np.float32, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    random = sparse.random_array(shape, density=density, format="lil", rng=rng, dtype=dtype)
    random[3:6] = 0
    if shape[0] > 10 and shape[1]:
        random[9] = 1
    random = random.tocsr()
    random.data = rng.integers(-4, 5, random.nnz).astype(dtype)
    return random


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(50, 40), (1, 7), (9, 1), (0, 3), (4, 0)])
def test_products_are_those_of_scipy(shape, dtype, name):
    stored = matrix(shape, dtype)
    formats, parameters = DECOMPOSITIONS[name]
    A = gs.decompose(stored, formats, **parameters)
    dense = integers((shape[1], 6), dtype)
    assert np.array_equal(gs.spmm(A, dense), stored @ dense)
    assert np.array_equal(A @ dense, stored @ dense)
    assert np.array_equal(A @ dense[:, 0], stored @ dense[:, 0])
    out = integers((shape[0], 6), dtype, seed=2)
    expected = 2 * (stored @ dense) + 3 * out
    assert gs.spmm(A, dense, alpha=2.0, beta=3.0, out=out) is out
    assert np.array_equal(out, expected)
    vector = integers(shape[0], dtype, seed=3)
    expected = stored @ dense[:, 0] + vector
    assert np.array_equal(gs.spmv(A, dense[:, 0], beta=1.0, out=vector), expected)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@pytest.mark.parametrize("shape", [(50, 40), (1, 7), (9, 1), (0, 3), (4, 0)])
def test_bound_products_read_new_operands(shape, name):
    stored = matrix(shape)
    formats, parameters = DECOMPOSITIONS[name]
    A = gs.decompose(stored, formats, **parameters)
    dense, out = integers((shape[1], 6)), np.full((shape[0], 6), np.nan, np.float32)
    bound = gs.spmm.bind(A, dense, out=out, check=True)
    assert len(bound.calls) == len(A.parts)
    for _ in range(2):
        bound()
        assert np.array_equal(out, stored @ dense)
        dense += 1
    assert [each.shape for each in bound.arguments.values()] == [dense.shape, out.shape]


def test_bound_sampled_products_of_parts_read_new_operands():
    stored = matrix()
    A = gs.decompose(stored, "hyb", c=3, k=1)
    X, Y = integers((50, 5)), integers((40, 5), seed=2)
    out = np.full(A.value_count, np.nan, np.float32)
    bound = gs.sddmm.bind(A, X, Y, out=out)
    for _ in range(2):
        bound()
        assert np.array_equal(out, gs.sddmm(A, X, Y))
        X += 1


@pytest.mark.parametrize("parameters", [{}, {"c": 3, "k": 1}])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sampled_products_are_in_the_order_of_the_values(format, parameters):
    stored = matrix()
    tensor = gs.from_scipy(stored).asformat(format)
    A = gs.decompose(tensor, "hyb", **parameters)
    X, Y = integers((50, 5)), integers((40, 5), seed=2)
    values = gs.sddmm(A, X, Y)
    assert values.shape == (tensor.nnz,)
    sampled = A.with_values(values).toarray()
    pattern = np.zeros(stored.shape, bool)
    rows = np.repeat(np.arange(50), np.diff(stored.indptr))
    pattern[rows, stored.indices] = True
    assert np.array_equal(sampled, np.where(pattern, X @ Y.T, 0))


def test_int64_indices_and_a_matrix_without_elements():
    stored = matrix()
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    dense = integers((40, 3))
    assert np.array_equal(gs.decompose(stored, "hyb") @ dense, stored @ dense)
    empty = gs.decompose(sparse.csr_array((5, 40), dtype=np.float32), "hyb")
    assert empty.parts == ()
    assert np.array_equal(empty @ dense, np.zeros((5, 3)))
    assert gs.sddmm(empty, integers((5, 2)), integers((40, 2))).size == 0
    assert (empty @ dense[:, :0]).shape == (5, 0)


def test_slots_without_an_element_do_not_read_operands():
    stored = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32))
    dense = np.array([[1], [np.inf], [2]], np.float32)
    assert np.array_equal(gs.decompose(stored, "hyb") @ dense, [[5], [np.inf]])


def test_parts_of_equal_format_and_width_are_compiled_once():
    KERNELS.forget()
    stored, dense = matrix((60, 64), density=0.3), integers((64, 11))
    classes = set()
    for partitions in (8, 16):
        A = gs.decompose(stored, "hyb", c=partitions, k=2)
        storing = A.coverage().initializing
        values = {
            (part.tensor.description, part.fixed_sizes["width"], number in storing)
            for number, part in enumerate(A.parts)
        }
        assert len(values) < len(A.parts)
        assert np.array_equal(gs.spmm(A, dense), stored @ dense)
        classes |= values
        assert len(KERNELS) == len(classes)
    gs.spmm(A, dense)
    assert len(KERNELS) == len(classes)


def test_a_rewritten_program_is_compiled_for_all_parts():
    stored = matrix()
    A = gs.decompose(stored, "hyb", c=2, k=1)
    kernel = gs.compile(A.rewrite(SCRIPT))
    dense, result = integers((40, 8)), np.full((50, 8), np.nan, np.float32)
    kernel(b=dense, c=result, **A.arguments)
    assert np.array_equal(result, stored @ dense)


def with_rows_left(shape=(50, 40)):
    """A matrix with empty rows, and the decompositions of which parts store rows and others add."""
    stored = matrix(shape)
    rest = ("csr", lambda i, j: i >= 0)
    return stored, {
        "rows": gs.decompose(stored, "hyb", k=6),
        "cut rows": gs.decompose(stored, "hyb", k=1),
        "partitions": gs.decompose(stored, "hyb", c=3),
        "one part": gs.decompose(stored, [("bsr", rest[1], BLOCKS)]),
        "csr last": gs.decompose(stored, [("dia", lambda i, j: abs(i - j) < 2), "csr"]),
        "slices": gs.decompose(stored, [("sell", rest[1])]),
        "stored rows": gs.decompose(stored, [("dcsr", lambda i, j: i % 2 == 0), "dcsr"]),
        "blocks": gs.decompose(
            stored, [("dbsr", lambda i, j: i % 8 < 4, BLOCKS), ("dbsr", rest[1], BLOCKS)]
        ),
    }


def test_rows_are_stored_by_one_part_or_set_to_zero():
    stored, decompositions = with_rows_left()
    empty = np.flatnonzero(np.diff(stored.indptr) == 0)
    dense, vector = integers((40, 8)), integers(40)
    for name, A in decompositions.items():
        for operand in (dense, vector):
            # Rows that no part stores would keep these.
            out = np.full((50, *operand.shape[1:]), np.nan, np.float32)
            gs.spmm(A, operand, out=out)
            assert np.array_equal(out, stored @ operand), name
    coverage = {name: A.coverage() for name, A in decompositions.items()}
    assert np.array_equal(coverage["rows"].left, empty)
    assert coverage["csr last"].left.size == 0
    # Default schedules do not store rows of blocks and slices from registers.
    assert all(coverage[name].initializing == () for name in ("one part", "slices", "blocks"))
    assert coverage["csr last"].initializing == (1,)
    assert coverage["stored rows"].adding == ()
    assert coverage["cut rows"].adding != ()


def test_the_kernel_of_the_first_part_sets_rows_to_zero_if_no_part_stores_any():
    stored, decompositions = with_rows_left()
    dense = integers((40, 8))
    for name, A in decompositions.items():
        bound = gs.spmm.bind(A, dense, out=np.full((50, 8), np.nan, np.float32))
        first = bound.calls[0]
        first.arguments["c"][...] = np.nan
        first()
        assert np.isfinite(first.arguments["c"]).all() == (A.coverage().left.size in (0, 50)), name
        if A.coverage().left.size == 50:
            bound()
            assert np.array_equal(bound.arguments["c"], stored @ dense), name


@pytest.mark.parametrize("operator", ["spmm", "spmv"])
def test_a_rewritten_program_initializes_each_row_once(operator):
    script = {"spmm": SCRIPT, "spmv": SPMV}[operator]
    stored, decompositions = with_rows_left()
    dense = integers((40, 8)) if operator == "spmm" else integers(40)
    names = ("b", "c") if operator == "spmm" else ("x", "y")
    for name, A in decompositions.items():
        program = A.rewrite(script)
        out = np.full((50, *dense.shape[1:]), np.nan, np.float32)
        gs.compile(program)(**dict(zip(names, (dense, out), strict=True)), **A.arguments)
        assert np.array_equal(out, stored @ dense), name
        inits = [bool(part.init) for part in program.functions[0].body]
        # A part in blocks is proved to visit all rows, by its format alone.
        is_whole = A.coverage().left.size == 0 or name == "one part"
        assert len(inits) == len(A.parts) + (not is_whole), name


@pytest.mark.parametrize("parameters", [{"k": 6}, {"k": 1}, {"c": 3, "k": 6}])
@pytest.mark.parametrize("features", [None, 1, 5, 64])
def test_parts_whose_rows_are_declared_disjoint_run_in_one_launch(features, parameters):
    stored = matrix()
    A = gs.decompose(stored, "hyb", **parameters)
    fused = len(A.coverage().initializing)
    dense = integers((40,) if features is None else (40, features))
    names = ("x", "y") if features is None else ("b", "c")
    program = A.rewrite(SPMV if features is None else SCRIPT, declares_rows=True)
    assert len(program.functions[0].relations) == fused * (fused - 1) // 2
    steps = [step for step in gs.explain(program).schedule.loop if step.op == "horizontal_fuse"]
    assert [len(step.args["loops"]) for step in steps] == ([fused] if fused > 1 else [])
    kernel = gs.compile(program)
    result = np.full((50, *dense.shape[1:]), np.nan, np.float32)
    kernel(**dict(zip(names, (dense, result), strict=True)), **A.arguments)
    assert np.array_equal(result, stored @ dense)


def test_rows_that_are_declared_disjoint_are_checked():
    A = gs.decompose(matrix(), "hyb", k=6)
    kernel = gs.compile(A.rewrite(SPMV, declares_rows=True))
    first, second, *_ = (f"rows_{part.name}" for part in A.parts)
    arguments = dict(A.arguments)
    rows = arguments[first].copy()
    rows[0] = arguments[second][0]
    arguments[first] = np.sort(rows)
    with pytest.raises(ArgumentError) as caught:
        kernel(x=integers(40), y=np.empty(50, np.float32), **arguments)
    assert caught.value.code == "kernel.disjoint"


def test_a_program_that_assigns_elements_which_slots_may_share_is_not_rewritten():
    A = gs.decompose(matrix(), [("sell", None, {"height": 4})])
    scattered = """
@T.prim_func
def f(a: T.handle, d: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (p, q), "int32")
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    D = T.sp.match_buffer(d, (I, N), "float32")
    with T.sp.iteration([I, J], "SS", "scatter") as [i, j]:
        D[i, j] = A[i, j]
"""
    with pytest.raises(FormatError, match="assign the same element") as caught:
        A.rewrite(scattered)
    assert caught.value.code == "format.program"


def test_values_are_updated():
    stored = matrix()
    A = gs.decompose(stored, "hyb", c=2)
    stored.data = integers(stored.nnz, seed=5)
    dense = integers((40, 8))
    assert np.array_equal(A.with_values(stored.data) @ dense, stored @ dense)


def test_operands_are_checked():
    A = gs.decompose(matrix(), [("bsr", lambda i, j: i < 8, BLOCKS), "csr"])
    dense = integers((40, 8))
    memory = np.zeros((50, 40), np.float32)
    calls = {
        "operand.shape": lambda: gs.spmm(A, dense[1:]),
        "operand.dtype": lambda: gs.spmm(A, dense.astype(np.float64)),
        "operand.out": lambda: gs.spmm(A, dense, beta=1.0),
        "operand.overlap": lambda: gs.spmm(A, memory[:40], out=memory),
    }
    for code, call in calls.items():
        with pytest.raises(ArgumentError) as caught:
            call()
        assert caught.value.code == code
    with pytest.raises(FormatError, match="'bsr_0'") as refused:
        gs.sddmm(A, integers((50, 2)), integers((40, 2)))
    assert refused.value.code == "format.program"
    with pytest.raises(ArgumentError):
        dense.T @ A
    with pytest.raises(TypeError):
        A @ "dense"


def test_a_dense_matrix_times_a_matrix_in_parts():
    matrix = sparse.random(30, 20, 0.2, "csr", np.float32, np.random.default_rng(3))
    dense = np.random.default_rng(4).random((5, 30), np.float32)
    A = gs.decompose(gs.from_scipy(matrix), "hyb")
    np.testing.assert_allclose(dense @ A, dense @ matrix.toarray(), rtol=1e-5)
