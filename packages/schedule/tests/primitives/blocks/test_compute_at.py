"""`compute_at`: producers in the loops of their consumers compute the region that is read there."""

from __future__ import annotations

import numpy as np
import pytest
from program_results import arrays_after
from refused import reason_of
from refused_programs import BEHIND, FIVE_ROWS, LAST_WINS, STAGED

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

SMOOTHED = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(64):
    with T.block("made"):
        va = T.axis.spatial(64, a)
        Q[va] = 2.0 * V[va]
for i in T.serial(61):
    with T.block("used"):
        vi = T.axis.spatial(61, i)
        W[vi] = Q[vi + 1] + Q[vi + 3]
"""
SUMS = """
Q = T.decl_buffer((8,), "float32")
for a in T.serial(8):
    for b in T.serial(T.int64(P[a + 1]) - T.int64(P[a])):
        with T.block("made"):
            va, vb = T.axis.remap("SR", [a, b])
            with T.init():
                Q[va] = 0.0
            Q[va] = Q[va] + V[T.int64(P[va]) + vb]
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("used"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[T.int64(P[vi]) + vj] = V[T.int64(P[vi]) + vj] - Q[vi]
"""
TILES = """
Q = T.decl_buffer((8, 8), "float32")
for a in T.serial(8):
    for b in T.serial(8):
        with T.block("made"):
            va, vb = T.axis.remap("SS", [a, b])
            Q[va, vb] = X[vb, va]
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("used"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Z[vi, vj] = Q[vi, vj]
"""
TREE = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(2):
    for b in T.serial(4):
        for c in T.serial(T.int64(P[a * 4 + b + 1]) - T.int64(P[a * 4 + b])):
            with T.block("made"):
                va, vb, vc = T.axis.remap("SSS", [a, b, c])
                Q[T.int64(P[va * 4 + vb]) + vc] = 2.0 * V[T.int64(P[va * 4 + vb]) + vc]
for i in T.serial(2):
    for j in T.serial(4):
        for k in T.serial(T.int64(P[i * 4 + j + 1]) - T.int64(P[i * 4 + j])):
            with T.block("used"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                W[T.int64(P[vi * 4 + vj]) + vk] = Q[T.int64(P[vi * 4 + vj]) + vk]
"""
EVERY_OTHER = """
Q = T.decl_buffer((2,), "float32")
for a in T.serial(8):
    with T.block("made"):
        va = T.axis.spatial(8, a)
        Q[va % 2] = V[va]
for i in T.serial(8):
    with T.block("used"):
        vi = T.axis.spatial(8, i)
        W[vi] = Q[vi % 2]
"""
INDIRECT = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(64):
    with T.block("made"):
        va = T.axis.spatial(64, a)
        Q[va] = V[va] + 1.0
for i in T.serial(7):
    with T.block("used"):
        vi = T.axis.spatial(7, i)
        W[vi] = Q[T.int64(P[vi]) - T.int64(P[0])]
"""
CASES = {
    "two elements that are a fixed number apart": (
        SMOOTHED,
        "i",
        """
for i in T.serial(61):
    Q = T.alloc_buffer((64,), "float32")
    for a in T.serial(3):
        with T.block("made"):
            va = T.axis.spatial(64, i + 1 + a)
            Q[va] = 2.0 * V[va]
""",
    ),
    "a reduction of one row": (
        SUMS,
        "i",
        """
for i in T.serial(8):
    Q = T.alloc_buffer((8,), "float32")
    for b in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("made"):
            va, vb = T.axis.remap("SR", [i, b])
""",
    ),
    "a tile that may end after the domain": (
        TILES,
        "j_0",
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        Q = T.alloc_buffer((8, 8), "float32")
        for b in T.serial(3):
            with T.block("made"):
                va = T.axis.spatial(8, i)
                vb = T.axis.spatial(8, j_0 * 3 + b)
                T.where(vb < 8)
                Q[va, vb] = X[vb, va]
""",
    ),
    "an element below the number of nested dense axes": (
        TREE,
        "k",
        """
for i in T.serial(2):
    for j in T.serial(4):
        for k in T.serial(T.int64(P[i * 4 + j + 1]) - T.int64(P[i * 4 + j])):
            Q = T.alloc_buffer((64,), "float32")
            with T.block("made"):
                va, vb, vc = T.axis.remap("SSS", [i, j, k])
""",
    ),
    "everything where the numbers of nested axes overlap": (
        TREE.replace("* 4", "* 3").replace("2.0 * V", "X[va, vb] * V"),
        "k",
        """
for i in T.serial(2):
    for j in T.serial(4):
        for k in T.serial(T.int64(P[i * 3 + j + 1]) - T.int64(P[i * 3 + j])):
            Q = T.alloc_buffer((64,), "float32")
            for a in T.serial(2):
""",
    ),
    "everything where points meet in one element": (
        EVERY_OTHER,
        "i",
        """
for i in T.serial(8):
    Q = T.alloc_buffer((2,), "float32")
    for a in T.serial(8):
""",
    ),
    "everything where the element is not known to exist": (
        INDIRECT,
        "i",
        """
for i in T.serial(7):
    Q = T.alloc_buffer((64,), "float32")
    for a in T.serial(64):
""",
    ),
}


def outcome(module):
    return arrays_after(module, p=np.array([0, 0, 5, 6, 30, 30, 41, 64, 64], np.int32), n=8)


@pytest.mark.parametrize("name", CASES)
def test_an_iteration_makes_what_it_reads(program, name):
    text, loop, expected = CASES[name]
    module = program(text)
    moved = ScheduleBuilder(module).compute_at("made", loop=loop).module
    assert body_text(moved).startswith(expected.strip("\n"))
    before, after = outcome(module), outcome(moved)
    for array in before:
        np.testing.assert_array_equal(after[array], before[array])


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("op", ["cache_read", "reindex_cache_read"])
@pytest.mark.parametrize("buffer", ["A", "B"])
@pytest.mark.parametrize("loop", ["i", "j_0", "j_1", "k_0", "k_1"])
def test_gathered_rows_of_a_tile(require_spmm, module, op, buffer, loop):
    builder = ScheduleBuilder(module).split("j", factors=(None, 2)).split("k", factors=(None, 3))
    builder.reorder("j_0", "k_0", "j_1", "k_1")
    getattr(builder, op)("csrmm", buffer=buffer, scope="local")
    builder.compute_at(f"csrmm_{buffer}_local", loop=loop)
    for rows, columns, features in ((0, 3, 2), (5, 4, 0), (7, 5, 4)):
        require_spmm(builder.module, features, rows=rows, columns=columns)


def test_what_a_loop_allocates_does_not_stop_it_from_being_parallel(require_spmm):
    builder = ScheduleBuilder(examples.SPMM).cache_read("csrmm", buffer="B", scope="local")
    builder.compute_at("csrmm_B_local", loop="i").parallel("i")
    require_spmm(builder.module, 3)


def test_a_block_moves_on_to_an_inner_loop(require_spmm):
    builder = ScheduleBuilder(examples.SPMM).cache_read("csrmm", buffer="B", scope="local")
    for loop in ("i", "j", "k"):
        builder.compute_at("csrmm_B_local", loop=loop)
        require_spmm(builder.module, 3)


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("buffer", ["B", "J_indices"])
def test_a_tile_of_rows_ends_where_the_rows_do(require_spmm, module, buffer):
    builder = ScheduleBuilder(module).cache_read("csrmm", buffer=buffer, scope="local")
    builder.split("i", factors=(None, 3)).compute_at(f"csrmm_{buffer}_local", loop="i_0")
    require_spmm(builder.module, 3)


USED_BEHIND = """
Q = T.decl_buffer((8, 8), "float32")
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Q[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Q[wh, wk]
{use}
"""


STEPS_OF_USED = {
    "compute_at": {"block": "first", "loop": "h"},
    "compute_inline": {"block": "first"},
    "reverse_compute_inline": {"block": "second"},
}


@pytest.mark.parametrize("use", ["T.prefetch(Q[0, 0])", "T.guard(X[0, 0] > T.float32(0.0), Q)"])
@pytest.mark.parametrize("op", STEPS_OF_USED)
def test_a_buffer_stays_where_it_is_prefetched_or_guarded_elsewhere(program, op, use):
    """It is neither allocated in a loop nor removed."""
    with pytest.raises(ScheduleError) as caught:
        verify(apply(program(USED_BEHIND.format(use=use)), Step(op, STEPS_OF_USED[op])).module)
    assert caught.value.code == f"schedule.{op}.other_access"


FROM_INIT = STAGED.replace('SS", [h, k]', 'SR", [h, k]').replace(
    "        Z[wh, wk] = Q[wh, wk]",
    """        with T.init():
                V[wh] = Q[wh, 0]
            V[wh] = V[wh] + 1.0""",
)
REFUSED = [
    (
        "compute_at.updates",
        STAGED.replace("= X[vi, vj]", "= Q[vi, vj] + X[vi, vj]"),
        {"block": "first", "loop": "h"},
    ),
    ("compute_at.parameter", BEHIND, {"block": "first", "loop": "h"}),
    (
        "compute_at.kind",
        STAGED.replace("for h in T.serial", "for h in T.parallel"),
        {"block": "first", "loop": "h"},
    ),
    ("compute_at.binding", STAGED.replace("[i, j]", "[i, i]"), {"block": "first", "loop": "h"}),
    ("compute_at.scope", STAGED, {"block": "first", "loop": "j"}),
    (
        "compute_at.other_access",
        STAGED + LAST_WINS.replace("= X[", "= Q["),
        {"block": "first", "loop": "h"},
    ),
    (
        "compute_at.other_access",
        STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="),
        {"block": "first", "loop": "h"},
    ),
    ("compute_at.other_access", FROM_INIT, {"block": "first", "loop": "h"}),
    ("compute_at.binding", FIVE_ROWS, {"block": "first", "loop": "h"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("compute_at", arguments)) == code
