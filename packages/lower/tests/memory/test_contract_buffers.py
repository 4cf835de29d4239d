"""`contract_buffers`: buffers move into the innermost possible body and shrink to what is used there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gossamer_ir.core.build import integer_value
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, For, If
from gossamer_ir.script import parse_module, print_expr
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import contract_buffers, lower_blocks, lower_to_flat

PRIVATE = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, 32), "float32")
    Y = T.match_buffer(y, (m, 32), "float32")
    tile = T.decl_buffer((m, 32), "float32", scope="local")
    for i in T.serial(m):
        for k_0 in T.serial(4):
            for k_1 in T.serial(8):
                tile[i, k_0 * 8 + k_1] = X[i, k_0 * 8 + k_1]
            for k_2 in T.serial(8):
                Y[i, k_0 * 8 + k_2] = tile[i, k_0 * 8 + k_2] + X[i, k_0 * 8 + k_2]
"""

CARRIED = """
@T.prim_func
def running(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    total = T.decl_buffer((1,), "float32", scope="local")
    total[0] = 0.0
    for i in T.serial(m):
        total[0] = total[0] + X[i]
        Y[i] = total[0]
"""

ALLOCATED = """
@T.prim_func
def gathered(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int64")
    X = T.match_buffer(x, (n, 32), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        for j in T.serial(P[i + 1] - P[i]):
            row = T.alloc_buffer((n, 32), "float32", scope="local")
            for k in T.serial(32):
                row[P[i] + j, k] = X[P[i] + j, k]
            for k_1 in T.serial(32):
                Y[i] = Y[i] + row[P[i] + j, k_1]
"""


GATHERED_TILES = """
@T.prim_func
def gathered(x: T.handle, p: T.handle, y: T.handle, m: T.int64, tiles: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m,), "float32")
    P = T.match_buffer(p, (tiles, 4), "int32")
    Y = T.match_buffer(y, (tiles, 4), "float32")
    T.assume(in_range(P, 0, 16))
    for t in T.serial(tiles):
        tile = T.alloc_buffer((m,), "float32", scope="local")
        for c in T.serial(16):
            if t * 16 + c < m:
                tile[t * 16 + c] = X[t * 16 + c]
        for i in T.serial(4):
            Y[t, i] = tile[t * 16 + T.int64(P[t, i])]
"""


def planned(text):
    return contract_buffers(lower_blocks(parse_module(text)))


def allocation(module):
    """The only allocation, and its enclosing loops."""

    def search(body, loops):
        for stmt in body:
            if isinstance(stmt, Allocate):
                return stmt.buffer, loops
            if isinstance(stmt, For):
                result = search(stmt.body, [*loops, stmt.var])
                if result:
                    return result
            if isinstance(stmt, If):
                result = search((*stmt.then_body, *stmt.else_body), loops)
                if result:
                    return result
        return None

    return search(module.functions[0].body, [])


def test_a_buffer_with_its_own_elements_in_each_iteration_moves_inside_and_shrinks():
    buffer, loops = allocation(planned(PRIVATE))
    assert loops == ["i", "k_0"]
    assert [integer_value(extent) for extent in buffer.shape] == [8]


def test_a_value_that_lives_from_iteration_to_iteration_stays_outside():
    buffer, loops = allocation(planned(CARRIED))
    assert loops == []
    assert [integer_value(extent) for extent in buffer.shape] == [1]


def test_the_meaning_stays():
    x = np.arange(96, dtype=np.float32).reshape(3, 32)
    y = np.zeros_like(x)
    run(planned(PRIVATE), {"x": x, "y": y, "m": 3})
    np.testing.assert_array_equal(y, 2 * x)
    total = np.zeros(96, dtype=np.float32)
    run(planned(CARRIED), {"x": x.ravel(), "y": total, "m": 96})
    np.testing.assert_array_equal(total, np.cumsum(x.ravel().astype(np.float64)))


def test_a_buffer_that_nothing_uses_disappears():
    module = planned(
        PRIVATE.replace(
            'scope="local")', 'scope="local")\n    idle = T.decl_buffer((m,), "float32")'
        )
    )
    names = [node.buffer.name for node in walk(module) if isinstance(node, Allocate)]
    assert names == ["tile"]


@pytest.mark.parametrize("side", ["if m > 1:", "if m <= 1:\n        X[0, 0] = 1.0\n    else:"])
def test_a_buffer_moves_into_the_side_of_a_choice_that_uses_it(side):
    before, _, nest = PRIVATE.partition("    for i in")
    inside = "\n".join(f"    {line}" for line in f"    for i in{nest}".splitlines())
    buffer, loops = allocation(planned(f"{before}    {side}\n{inside}\n"))
    assert loops == ["i", "k_0"]
    assert [integer_value(extent) for extent in buffer.shape] == [8]


def test_a_buffer_that_both_sides_of_a_choice_use_stays_before_it():
    text = (
        CARRIED.rstrip()
        + "\n    if m > 1:\n        total[0] = 1.0\n    else:\n        total[0] = 2.0\n"
    )
    _, loops = allocation(planned(text))
    assert loops == []


def test_a_buffer_that_a_condition_reads_stays_before_it():
    before, _, _ = CARRIED.partition("    total[0] = 0.0")
    module = planned(f"{before}    if total[0] < 0.0:\n        total[0] = X[0]\n")
    assert diagnostics(module) == ()
    assert [type(stmt) for stmt in module.functions[0].body] == [Allocate, If]


def test_what_a_body_allocates_is_no_larger_than_what_lives_there():
    (allocate,) = (node for node in walk(planned(ALLOCATED)) if isinstance(node, Allocate))
    assert [integer_value(extent) for extent in allocate.buffer.shape] == [32]


def test_a_row_is_as_long_as_the_loop_over_it():
    text = """
    for i in T.serial(m):
        row = T.alloc_buffer((n,), "float32", scope="local")
        for j in T.serial(P[i + 1] - P[i]):
            row[P[i] + j] = X[P[i] + j, 0]
        for j_1 in T.serial(P[i + 1] - P[i]):
            Y[i] = Y[i] + row[P[i] + j_1]
"""
    module = planned(ALLOCATED[: ALLOCATED.index("    for i in")] + text.lstrip("\n"))
    (allocate,) = (node for node in walk(module) if isinstance(node, Allocate))
    assert print_expr(allocate.buffer.shape[0]) == "T.max(P[i + 1] - P[i], 0)"
    p, x = np.array([0, 3, 3, 5]), np.arange(5 * 32, dtype=np.float32).reshape(5, 32)
    y = np.zeros(3, np.float32)
    run(module, {"p": p, "x": x, "y": y, "m": 3, "n": 5})
    np.testing.assert_array_equal(y, [96, 0, 224])


ROWS = """
@T.prim_func
def rows(p: T.handle, x: T.handle, y: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int32")
    X = T.match_buffer(x, (nnz,), "float32")
    Y = T.match_buffer(y, (nnz,), "float32")
    row = T.decl_buffer((nnz,), "float32")
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(monotone(P))
    for i in T.parallel(m):
        for j_0 in T.serial((P[i + 1] - P[i] + 3) // 4):
            for j_1 in T.serial(4):
                if j_0 * 4 + j_1 < P[i + 1] - P[i]:
                    row[P[i] + j_0 * 4 + j_1] = X[P[i] + j_0 * 4 + j_1] * 2.0
        for j in T.serial(P[i + 1] - P[i]):
            Y[P[i] + j] = row[P[i] + j] + row[P[i + 1] - 1 - j]
""".replace("P[i + 1]", "T.int64(P[i + 1])").replace("P[i]", "T.int64(P[i])")


def in_rows(text):
    """The result of the program for rows of 0, 3, 0, 9 and 4 elements, and the expected result."""
    p, x = np.int32([0, 0, 3, 3, 12, 16]), np.arange(16, dtype=np.float32)
    y = np.full_like(x, np.nan)
    run(lower_to_flat(parse_module(text)), {"p": p, "x": x, "y": y, "m": 5, "nnz": 16})
    backwards = [x[low:high][::-1] for low, high in pairwise(p)]
    return y, 2 * (x + np.concatenate(backwards))


FORWARDS = ROWS.replace("row[T.int64(P[i + 1]) - 1 - j]", "row[T.int64(P[i]) + j]")


def test_a_row_that_is_written_in_tiles_is_as_long_as_a_row():
    buffer, loops = allocation(planned(FORWARDS))
    assert loops == ["i"]
    expected = "T.max(T.int64(P[i + 1]) - T.int64(P[i]), 0)"
    assert [print_expr(extent) for extent in buffer.shape] == [expected]


NOT_APART = {
    "rows may overlap": FORWARDS.replace("    T.assume(monotone(P))\n", ""),
    "the element before the row": FORWARDS.replace(
        "row[T.int64(P[i]) + j]", "row[T.int64(P[i]) + j - 1]"
    ),
    "one more than the row has": FORWARDS.replace("< T.int64(P[i + 1])", "<= T.int64(P[i + 1])"),
    "any element": FORWARDS.replace("Y[T.int64(P[i]) + j] =", "Y[T.int64(P[i]) + j] = row[j] +"),
    "without a condition": FORWARDS.replace("if j_0 * 4 + j_1 <", "if j_1 <"),
}


@pytest.mark.parametrize("name", NOT_APART)
def test_rows_that_are_not_proved_to_be_apart_share_a_buffer(name):
    buffer, loops = allocation(planned(NOT_APART[name]))
    assert loops == []
    assert [print_expr(extent) for extent in buffer.shape] == ["nnz"]


@pytest.mark.parametrize("text", [ROWS, FORWARDS])
def test_rows_mean_what_they_did(text):
    actual, expected = in_rows(text)
    if text is FORWARDS:
        expected = 4 * np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(actual, expected)


BEYOND = """
@T.prim_func
def rows(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int64")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    row = T.decl_buffer((n,), "float32", scope="local")
    T.assume(in_range(P, 0, n + 1))
    T.assume(monotone(P))
    for i in T.serial(m + 3):
        for t in T.serial(T.if_then_else(i < m, 2, 0)):
            for j in T.serial(P[i + 1] - P[i]):
                row[P[i] + j] = X[P[i] + j] * 2.0
            for k in T.serial(P[i + 1] - P[i]):
                Y[P[i] + k] = row[P[i] + k]
"""


def test_the_length_of_a_row_is_not_read_where_there_is_no_row():
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    p = np.array([0, 2, 2, 5], np.int64)
    run(lower_to_flat(parse_module(BEYOND)), {"p": p, "x": x, "y": y, "m": 3, "n": 5})
    np.testing.assert_array_equal(y, 2 * x)


def test_the_longest_row_is_allocated_before_the_rows():
    flat = lower_to_flat(parse_module(FORWARDS))
    entry, chunk = flat.functions
    assert not [node for node in walk(*entry.body) if isinstance(node, Allocate)]
    *before, loop = chunk.body
    assert [node.buffer.name for node in before if isinstance(node, Allocate)] == [
        "row_most",
        "row",
    ]
    assert not [node for node in walk(loop) if isinstance(node, Allocate)]


TREE = """
@T.prim_func
def tree(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m * 3 + 1,), "int64")
    X = T.match_buffer(x, (n, 8), "float32")
    Y = T.match_buffer(y, (n, 8), "float32")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, n + 1))
    tile = T.decl_buffer((n, 8), "float32", scope="local")
    for i in T.serial(m):
        for r in T.serial(3):
            for j in T.serial(P[i * 3 + r + 1] - P[i * 3 + r]):
                for k_0 in T.serial(8):
                    tile[P[i * 3 + r] + j, k_0] = X[P[i * 3 + r] + j, k_0] * 2.0
                for k_1 in T.serial(8):
                    Y[P[i * 3 + r] + j, k_1] = tile[P[i * 3 + r] + j, k_1] + 1.0
"""


def allocations(module):
    """The shapes of the allocated buffers, by the variable of the innermost loop around each."""
    shapes = {}
    for loop in walk(module):
        for stmt in loop.body if isinstance(loop, For) else ():
            if isinstance(stmt, Allocate):
                shapes[loop.var] = tuple(map(print_expr, stmt.buffer.shape))
    return shapes


def test_one_fiber_of_a_tree_of_axes_lives_in_the_loop_over_it():
    """The loop over parents has no range of elements of its own, but is proved to have no shared ones."""
    assert allocations(contract_buffers(parse_module(TREE))) == {"j": ("8",)}


def test_a_loop_without_a_range_does_not_allocate_the_whole_buffer_in_each_iteration():
    """The elements of an iteration are those of a fiber, but two loops inside use them."""
    whole = TREE.replace(
        "                for k_1 in",
        "            for j in T.serial(P[i * 3 + r + 1] - P[i * 3 + r]):\n                for k_1 in",
    )
    module = parse_module(whole.replace("for r in T.serial(3)", "for r in T.serial(m)"))
    assert "i" not in allocations(contract_buffers(module))


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ("0, 16", "0, 16", 16),
        ("0, 16", "3, 7", 16),
        ("0, 16", "0, 20", 20),
        ("0, 16", "0, m", None),
        ("    T.assume(in_range(P, 0, 16))\n", "", None),
    ],
    ids=["in a tile", "in a part", "beyond a tile", "a symbolic bound", "no fact"],
)
def test_elements_at_gathered_places_are_as_many_as_a_fact_allows(old, new, size):
    buffer, loops = allocation(planned(GATHERED_TILES.replace(old, new, 1)))
    (extent,) = buffer.shape
    assert (integer_value(extent), loops) == (size, ["t"])


@pytest.mark.parametrize("m", [1, 16, 37])
def test_contracted_tiles_have_the_gathered_elements(m):
    tiles = -(-m // 16)
    random = np.random.default_rng(m)
    x = random.integers(-9, 10, m).astype(np.float32)
    start = 16 * np.arange(tiles)[:, None]
    places = random.integers(0, np.minimum(16, m - start), (tiles, 4)).astype(np.int32)
    y = np.full((tiles, 4), np.nan, np.float32)
    run(planned(GATHERED_TILES), {"x": x, "p": places, "y": y, "m": m, "tiles": tiles})
    np.testing.assert_array_equal(y, x[start + places])


THREADS = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (m, 32), "float32")
    Y = T.match_buffer(y, (m, 32), "float32")
    tile = T.decl_buffer((m, 32), "float32", scope="{scope}")
    for i in T.thread_binding(m, thread="blockIdx.x"):
        for k in T.thread_binding(32, thread="threadIdx.x"):
            tile[i, k] = X[i, k]
            Y[i, k] = tile[i, k] * 2.0
"""


@pytest.mark.parametrize(
    ("scope", "loop", "shape"),
    [("local", "k", ["1"]), ("shared", "i", ["32"]), ("global", None, ["m", "32"])],
)
def test_threads_have_local_memory_and_blocks_shared_memory(scope, loop, shape):
    """Memory of a grid is allocated outside of it."""
    module = contract_buffers(parse_module(THREADS.format(scope=scope)))
    (function,) = module.functions
    homes = {
        (node.var if isinstance(node, For) else None): stmt.buffer
        for node in walk(function)
        for stmt in getattr(node, "body", ())
        if isinstance(stmt, Allocate)
    }
    assert [*homes] == [loop]
    assert [print_expr(extent) for extent in homes[loop].shape] == shape
    x, y = np.arange(96, dtype=np.float32).reshape(3, 32), np.zeros((3, 32), np.float32)
    run(module, {"x": x, "y": y, "m": 3})
    np.testing.assert_array_equal(y, 2 * x)


FUSED = """
@T.prim_func
def copied(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (m * 6, 4), "float32")
    Y = T.match_buffer(y, (m * 6, 4), "float32")
    for i in T.serial(m):
        tile = T.alloc_buffer((m * 6, 4), "float32", scope="shared")
        for t_0 in T.serial(2):
            for t in T.thread_binding(16, thread="threadIdx.x"):
                if {condition}:
                    tile[i * 6 + (t_0 * 16 + t) // 4, (t_0 * 16 + t) % 4] = X[i * 6 + (t_0 * 16 + t) // 4, (t_0 * 16 + t) % 4]
        for t_1 in T.thread_binding(24, thread="threadIdx.y"):
            Y[i * 6 + t_1 // 4, t_1 % 4] = tile[i * 6 + t_1 // 4, t_1 % 4] * 2.0
"""  # noqa: E501  (scripts have no line breaks inside an expression)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("t_0 * 16 + t < 24", 6), ("24 > t_0 * 16 + t", 6), ("t < 24 - t_0 * 16", 6), ("t_0 < 24", 8)],
)
def test_a_tile_that_fused_loops_fill_has_the_size_of_the_tile(condition, rows):
    module = contract_buffers(parse_module(FUSED.format(condition=condition)))
    (buffer,) = (node.buffer for node in walk(module.functions[0]) if isinstance(node, Allocate))
    assert [integer_value(extent) for extent in buffer.shape] == [rows, 4]
    x, y = np.arange(72, dtype=np.float32).reshape(18, 4), np.zeros((18, 4), np.float32)
    if rows == 6:
        run(module, {"x": x, "y": y, "m": 3})
        np.testing.assert_array_equal(y, 2 * x)
