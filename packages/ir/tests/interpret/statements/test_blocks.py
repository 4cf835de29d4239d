"""Blocks of the loop stage: where init runs, for every arrangement of the loops."""

from itertools import pairwise

import numpy as np
import pytest

from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.script import parse_module

NAN = np.nan

HEAD = """
@T.prim_func
def main(a: T.handle, y: T.handle, indptr: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (nnz,), "float64")
    Y = T.match_buffer(y, (m, n), "float64")
    P = T.match_buffer(indptr, (m + 1,), "int64")
"""

UPDATE = """
with T.block("sum"):
    vi = T.axis.spatial(m, VI)
    vj = T.axis.reduce(P[vi + 1] - P[vi], VJ)
    vk = T.axis.spatial(n, VK)
    WHERE
    with T.init():
        Y[vi, vk] = 0.0
    Y[vi, vk] = Y[vi, vk] + A[P[vi] + vj]
"""


def indented(text, depth):
    return "\n".join(depth * 4 * " " + line for line in text.strip("\n").splitlines())


def nest(*heads, vi="i", vj="j", vk="k", where=None, inner=UPDATE):
    """Loops around the block that adds the row sums of a ragged matrix to each column of Y."""
    lines = [indented(head, depth + 1) for depth, head in enumerate(heads)]
    block = inner.replace("VI", vi).replace("VJ", vj).replace("VK", vk)
    block = block.replace("WHERE", f"T.where({where})" if where else "")
    return HEAD + "\n".join([*lines, indented(block, len(heads) + 1)])


LENGTHS = [2, 0, 3, 1, 0]


def summed(script, lengths=tuple(LENGTHS), n=2, **options):
    """Runs the script over rows of those lengths; returns Y and the row sums in each column."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    a = np.arange(1.0, indptr[-1] + 1)
    y = np.full((len(lengths), n), NAN)
    module = parse_module(script)
    assert module.stage == "loop"
    sizes = {"m": len(lengths), "n": n, "nnz": a.size}
    run(module, {"a": a, "y": y, "indptr": indptr, **sizes}, **options)
    rows = [a[low:high].sum() for low, high in pairwise(indptr)]
    return y, np.repeat(np.array(rows)[:, None], n, axis=1)


ROWS, J, K = "for i in T.serial(m):", "for j in T.serial(P[i + 1] - P[i]):", "for k in T.serial(n):"
TILES = "for i0 in T.serial((m + 1) // 2):"
NESTS = {
    "as lowered": nest(ROWS, J, K),
    "spatial loop outside": nest(ROWS, K, J),
    "spatial loop outermost": nest(K, ROWS, J),
    "split rows": nest(
        TILES, "for i1 in T.serial(2):", "for j in T.serial(5):", K, vi="i0 * 2 + i1",
        where="i0 * 2 + i1 < m and j < P[T.min(m, i0 * 2 + i1 + 1)] - P[T.min(m, i0 * 2 + i1)]",
    ),
    "split reduction": nest(
        ROWS, "for j0 in T.serial((P[i + 1] - P[i] + 1) // 2):", K, "for j1 in T.serial(2):",
        vj="j0 * 2 + j1", where="j0 * 2 + j1 < P[i + 1] - P[i]",
    ),
    "predicate over block variables": nest(
        ROWS, "for j in T.serial(5):", K, where="vj < P[vi + 1] - P[vi] and vk < n",
    ),
    "let in between": nest(ROWS, "length = P[i + 1] - P[i]\nfor j in T.serial(length):", K),
    "lets feeding both": nest(
        "for f in T.serial(m * 5):", "row = f // 5\nplace = f % 5\nfor k in T.serial(n):",
        vi="row", vj="place", where="place < P[row + 1] - P[row]",
    ),
    "condition around": nest(
        ROWS, "for j in T.serial(5):", "if j < P[i + 1] - P[i]:", K,
    ),
    "condition around with else": nest(
        ROWS, "for j in T.serial(5):", "if j >= P[i + 1] - P[i]:\n    pass\nelse:", K,
    ),
    "parallel rows": nest("for i in T.parallel(m, weight=P[i], grain=1):", J, K),
    "threads": nest(
        'for i in T.thread_binding(m, thread="blockIdx.x"):', J,
        'for k in T.thread_binding(n, thread="threadIdx.x"):',
    ),
    "vectors and unrolling": nest(ROWS, J, "for k in T.vectorized(n):"),
}  # fmt: skip


@pytest.mark.parametrize("script", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("lengths", [LENGTHS, [0, 0], [5], []], ids=str)
def test_init_runs_once_before_every_update(script, lengths):
    y, expected = summed(script, lengths)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("chunks", [2, 5, 8])
def test_parallel_loops_run_in_chunks_last_to_first(chunks):
    y, expected = summed(NESTS["parallel rows"], chunks=chunks)
    np.testing.assert_array_equal(y, expected)


def test_chunks_expose_a_dependence():
    body = """
    for i in T.parallel(m):
        Y[i, 0] = T.if_then_else(i == 0, 1.0, Y[T.max(i - 1, 0), 0] + 1.0)
"""
    serial, _ = summed(HEAD + body, n=1)
    np.testing.assert_array_equal(serial[:, 0], [1, 2, 3, 4, 5])
    chunked, _ = summed(HEAD + body, n=1, chunks=5)
    np.testing.assert_array_equal(chunked[:, 0], [1, NAN, NAN, NAN, NAN])


COLUMNS = """
    for j in T.serial(m):
        for p in T.serial(P[j + 1] - P[j]):
            with T.block("scatter"):
                vj = T.axis.reduce(m, j)
                vp = T.axis.spatial(P[vj + 1] - P[vj], p)
                with T.init():
                    Y[vp, 0] = 0.0
                Y[vp, 0] = Y[vp, 0] + A[P[vj] + vp]
"""


def test_a_spatial_loop_whose_extent_needs_the_reduction_loop():
    y, _ = summed(HEAD + COLUMNS, n=1)
    np.testing.assert_array_equal(y[:, 0], [10.0, 6.0, 5.0, NAN, NAN])


SCATTER = """
@T.prim_func
def main(a: T.handle, y: T.handle, indices: T.handle, m: T.int64, n: T.int64, w: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, w), "float64")
    Y = T.match_buffer(y, (n,), "float64")
    Indices = T.match_buffer(indices, (m, w), "int64")
    for i, j in T.grid(m, w):
        with T.block("scatter"):
            vi, vj = T.axis.remap("KINDS", [i, j])
            T.where(Indices[vi, vj] < n)
            with T.init():
                Y[Indices[vi, vj]] = 0.0
            Y[Indices[vi, vj]] = Y[Indices[vi, vj]] + A[vi, vj]
"""


@pytest.mark.parametrize("kinds", ["RS", "RR"])
def test_an_init_that_mentions_reduction_iterators(kinds):
    y = np.full(3, -1.0)
    indices = np.array([[0, 2], [2, 3], [3, 3]])
    a = np.array([[1.0, 2.0], [4.0, NAN], [NAN, NAN]])
    arguments = {"a": a, "y": y, "indices": indices, "m": 3, "n": 3, "w": 2}
    run(parse_module(SCATTER.replace("KINDS", kinds)), arguments)
    np.testing.assert_array_equal(y, [1.0, -1.0, 6.0])


def test_a_unit_reduction_that_its_predicate_excludes_still_initializes():
    y, _ = summed(nest(ROWS, K, vj="0", where="vj < P[vi + 1] - P[vi]"))
    np.testing.assert_array_equal(y[:, 0], [1, 0, 3, 6, 0])


NESTED = """
    for i in T.serial(m):
        with T.block("outer"):
            vi = T.axis.spatial(m, i)
            with T.init():
                for k0 in T.serial(n):
                    Y[vi, k0] = 0.0
            for j, k in T.grid(P[vi + 1] - P[vi], n):
                with T.block("inner"):
                    vj, vk = T.axis.remap("RS", [j, k])
                    Y[vi, vk] = Y[vi, vk] + A[P[vi] + vj]
"""


def test_nested_blocks_with_the_init_outside():
    y, expected = summed(HEAD + NESTED)
    np.testing.assert_array_equal(y, expected)


INNER = """
    for i in T.serial(m):
        with T.block("outer"):
            vi = T.axis.spatial(m, i)
            for j, k in T.grid(P[vi + 1] - P[vi], n):
                with T.block("inner"):
                    vj, vk = T.axis.remap("RS", [j, k])
                    with T.init():
                        Y[vi, vk] = 0.0
                    Y[vi, vk] = Y[vi, vk] + A[P[vi] + vj]
"""


def test_an_init_inside_is_hoisted_over_the_loops_of_the_outer_block():
    y, expected = summed(HEAD + INNER)
    np.testing.assert_array_equal(y, expected)


def test_a_block_variable_outside_its_domain_is_an_error():
    with pytest.raises(InterpreterError, match=r"'sum', 'vj' is 2, .* \[0, 2\)"):
        summed(nest(ROWS, J, K, vj="j + 1"))


def test_a_predicate_skips_the_body_and_the_init():
    y, _ = summed(nest(ROWS, J, K, where="vi != 2"))
    np.testing.assert_array_equal(y[:, 0], [3, 0, NAN, 6, 0])


WHILE = """
    for i in T.serial(m):
        with T.block("search"):
            vi = T.axis.spatial(m, i)
            Low = T.alloc_buffer((2,), "int64", scope="local")
            Low[0] = 0
            Low[1] = m + 1
            while Low[0] < Low[1]:
                middle = (Low[0] + Low[1]) // 2
                if P[middle] < vi:
                    Low[0] = middle + 1
                else:
                    Low[1] = middle
            Y[vi, 0] = T.float64(Low[0])
"""


def test_while_with_local_memory():
    y, _ = summed(HEAD + WHILE, n=1)
    np.testing.assert_array_equal(y[:, 0], np.searchsorted([0, 2, 2, 5, 6, 6], range(5)))


def test_a_domain_may_end_beyond_the_largest_integer():
    module = parse_module("""
@T.prim_func
def main(y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (8,), "float32")
    for k in T.serial(m, m + 5):
        with T.block("b"):
            vk = T.axis.spatial((m, m + 5), k)
            Y[vk - m] = 1.0
""")
    y = np.zeros(8, np.float32)
    run(module, {"y": y, "m": 2**63 - 5})
    assert y.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


def test_the_loops_of_an_init_may_end_beyond_the_largest_integer():
    module = parse_module("""
@T.prim_func
def main(y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (4,), "float32")
    for k in T.serial(3):
        for i in T.serial(m, m + 4):
            with T.block("b"):
                vi = T.axis.spatial(4, i - m)
                vk = T.axis.reduce(3, k)
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + 1.0
""")
    y = np.full(4, np.nan, np.float32)
    run(module, {"y": y, "m": 2**63 - 2})
    assert y.tolist() == [3, 3, 3, 3]
