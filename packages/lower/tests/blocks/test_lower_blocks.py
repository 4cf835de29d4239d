"""`lower_blocks`: init runs once for each visited element, predicates become conditions, unit loops
vanish.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For, If
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_blocks

ROW_SUMS = """
@T.prim_func
def row_sums(x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        for j_0 in T.serial((n + 3) // 4):
            for j_1 in T.serial(4):
                with T.block("sums"):
                    vi = T.axis.spatial(m, i)
                    vj = T.axis.reduce(n, j_0 * 4 + j_1)
                    T.where(vj < n)
                    with T.init():
                        Y[vi] = 0.0
                    Y[vi] = Y[vi] + X[vi, vj]
"""

COLUMN_SUMS = """
@T.prim_func
def column_sums(x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sums"):
                vi, vj = T.axis.remap("RS", [i, j])
                with T.init():
                    Y[vj] = 0.0
                Y[vj] = Y[vj] + X[vi, vj]
"""

FUSED = """
@T.prim_func
def fused(x: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (4, 8), "float32")
    Y = T.match_buffer(y, (4,), "float32")
    for f in T.serial(32):
        with T.block("sums"):
            vi = T.axis.spatial(4, f // 8)
            vj = T.axis.reduce(8, f % 8)
            with T.init():
                Y[vi] = 0.0
            Y[vi] = Y[vi] + X[vi, vj]
"""


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 7), (2, 8)])
@pytest.mark.parametrize(("text", "axis"), [(ROW_SUMS, 1), (COLUMN_SUMS, 0)])
def test_init_runs_once_for_each_element_also_where_the_reduction_is_empty(text, axis, shape):
    module = lower_blocks(parse_module(text))
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    y = np.full(shape[1 - axis], np.nan, dtype=np.float32)
    run(module, {"x": x, "y": y, "m": shape[0], "n": shape[1]})
    np.testing.assert_array_equal(y, x.astype(np.float64).sum(axis=axis))


def test_no_block_is_left_and_a_predicate_becomes_a_condition():
    nodes = list(walk(lower_blocks(parse_module(ROW_SUMS))))
    assert not any(isinstance(node, Block) for node in nodes)
    assert any(isinstance(node, If) for node in nodes)


def test_a_loop_that_feeds_both_kinds_is_run_for_the_init_too():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.full(4, np.nan, dtype=np.float32)
    run(lower_blocks(parse_module(FUSED)), {"x": x, "y": y})
    np.testing.assert_array_equal(y, x.astype(np.float64).sum(axis=1))


def test_a_reduction_without_a_loop_does_not_keep_init_from_running():
    text = ROW_SUMS.replace("T.axis.reduce(n, j_0 * 4 + j_1)", "T.axis.reduce(n, 2)")
    y = np.full(3, np.nan, dtype=np.float32)
    module = lower_blocks(parse_module(text))
    run(module, {"x": np.ones((3, 2), np.float32), "y": y, "m": 3, "n": 2})
    np.testing.assert_array_equal(y, [0, 0, 0])


AROUND = """
@T.prim_func
def around(x: T.handle, y: T.handle, m: T.int64, n: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (m,), "int32")
    for j in T.serial(n):
        for l in T.serial(k):
            for i in T.serial(m):
                if i != 1 and j != 2:
                    with T.block("sums"):
                        vi, vj = T.axis.remap("SR", [i, j])
                        with T.init():
                            Y[vi] = 0
                        Y[vi] = Y[vi] + X[vj]
"""


@pytest.mark.parametrize(
    ("text", "loops", "expected"),
    [
        (AROUND, 1, [9, 7, 9]),
        (AROUND, 0, [7, 7, 7]),
        (AROUND.replace("i != 1 and j != 2", "j == 2"), 1, [4, 4, 4]),
        (AROUND.replace("i != 1 and j != 2", "i == 1").replace(
            "                    with T.block",
            "                    pass\n                else:\n                    with T.block",
        ), 1, [13, 7, 13]),
        (AROUND.replace("T.serial(k)", "T.serial(j - 1)").replace("i != 1 and j != 2", "i != 1"),
         1, [12, 7, 12]),
    ],
    ids=["conditions on elements", "nothing is visited", "conditions on a reduction", "else",
         "a loop of the reduction that says how often another runs"],
)  # fmt: skip
def test_an_init_runs_where_the_elements_are_visited(text, loops, expected):
    module = parse_module(text)
    for current in (module, lower_blocks(module)):
        y = np.full(3, 7, np.int32)
        run(current, {"x": np.array([2, 3, 4, 4], np.int32), "y": y, "m": 3, "n": 4, "k": loops})
        np.testing.assert_array_equal(y, expected)


LET = ROW_SUMS.replace(
    "                with T.block",
    "                at = j_0 * 4 + j_1\n                with T.block",
).replace("T.axis.reduce(n, j_0 * 4 + j_1)", "T.axis.reduce(n, at)")


def test_a_let_may_stand_between_a_loop_and_its_block():
    x = np.arange(14, dtype=np.float32).reshape(2, 7)
    y = np.full(2, np.nan, dtype=np.float32)
    run(lower_blocks(parse_module(LET)), {"x": x, "y": y, "m": 2, "n": 7})
    np.testing.assert_array_equal(y, x.astype(np.float64).sum(axis=1))


def test_a_let_that_reads_what_is_written_is_refused():
    text = LET.replace("at = j_0 * 4 + j_1", "at = j_0 * 4 + j_1 + T.int64(Y[0])")
    with pytest.raises(UnsupportedError, match="let 'at'") as caught:
        lower_blocks(parse_module(text))
    assert caught.value.code == "lower.lower_blocks.let_above_block"


ALLOCATED = """
@T.prim_func
def rows(x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        R = T.alloc_buffer((m,), "float32")
        for j in T.serial(n):
            with T.block("sum"):
                vi = T.axis.spatial(m, i)
                vj = T.axis.reduce(n, (i + j) % n)
                with T.init():
                    R[vi] = 0.0
                R[vi] = R[vi] + X[vi, vj]
        Y[i] = R[i]
"""


def test_an_init_before_its_buffer_is_allocated_is_refused():
    with pytest.raises(UnsupportedError, match="init of the block 'sum'") as caught:
        lower_blocks(parse_module(ALLOCATED))
    assert caught.value.code == "lower.lower_blocks.allocated_inside"
    kept = lower_blocks(parse_module(ALLOCATED.replace("(i + j) % n", "j")))
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(2, np.float32)
    run(kept, {"x": x, "y": y, "m": 2, "n": 3})
    np.testing.assert_array_equal(y, x.sum(axis=1))


def test_loops_of_extent_one_disappear():
    text = COLUMN_SUMS.replace("T.serial(m)", "T.serial(1)")
    loops = [node.var for node in walk(lower_blocks(parse_module(text))) if isinstance(node, For)]
    assert loops == ["j_init", "j"]
