"""`prefetch`: which elements are prefetched, and that results do not change."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import BEHIND, FILLED

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Prefetch
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics, verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit.show import body_text


def asked(builder, **arguments):
    return body_text(builder.prefetch("csrmm", buffer="B", **arguments).module)


def test_a_row_of_the_gathered_operand_is_asked_for_line_by_line(spmm):
    text = asked(ScheduleBuilder(spmm(40)), loop="j", distance=8)
    assert "if T.int64(J_indptr[i]) + (j + 8) < nnz:" in text
    assert "for j_line in T.unroll(3):" in text
    assert "T.prefetch(B, T.int64(J_indices[T.int64(J_indptr[i]) + (j + 8)]), j_line * 16)" in text


def test_a_short_row_takes_one_prefetch(spmm):
    text = asked(ScheduleBuilder(spmm(16)), loop="j", distance=1)
    assert "T.prefetch(B, T.int64(J_indices[T.int64(J_indptr[i]) + (j + 1)]), 0)" in text


def test_any_number_of_features_takes_a_loop(spmm):
    assert "for j_line in T.serial((K + 15) // 16):" in asked(
        ScheduleBuilder(spmm()), loop="j", distance=4
    )


def test_of_a_tile_only_its_own_lines_are_asked_for(spmm):
    tiled = ScheduleBuilder(spmm(500)).split("k", factors=(2, 16, 16))
    text = asked(tiled.reorder("k_0", "j", "k_1", "k_2"), loop="j", distance=4)
    assert "for j_line in T.unroll(16):" in text
    assert "k_0 * 256 + j_line * 16)" in text


def test_iterations_beyond_the_end_of_a_row_ask_for_nothing(spmm):
    grouped = ScheduleBuilder(spmm(16)).split("j", factors=(None, 4))
    text = asked(grouped, loop="j_1", distance=4)
    assert (
        "if T.if_then_else(j_0 * 4 + j_1 < T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i]), "
        "T.int64(J_indptr[i]) + (j_0 * 4 + (j_1 + 4)) < nnz, False):"
    ) in text


def test_iterations_that_a_loop_has_not_ask_for_nothing(program):
    body = """
for i in T.serial(n):
    for j in T.serial(i):
        with T.block("below"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vj] = W[vj + vi * 2]
"""
    builder = ScheduleBuilder(program(body))
    prefetching = builder.prefetch("below", buffer="W", loop="i", distance=2**32).module
    assert (
        "if i + 4294967296 < n:\n        for i_line in T.serial((i + 4294967296 + 15)"
        in body_text(prefetching)
    )


def test_an_element_read_twice_is_asked_for_once(program):
    body = """
for i in T.serial(8):
    with T.block("twice"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[T.int64(P[vi])] + W[T.int64(P[vi])] * W[vi]
"""
    builder = ScheduleBuilder(program(body)).prefetch("twice", buffer="W", loop="i", distance=3)
    assert sum(isinstance(node, Prefetch) for node in walk(builder.module)) == 2


def test_each_index_is_read_only_where_it_exists(program):
    body = """
for i in T.serial(8):
    with T.block("far"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[T.int64(P[T.int64(P[vi])])]
"""
    builder = ScheduleBuilder(program(body)).prefetch("far", buffer="W", loop="i", distance=3)
    text = body_text(builder.module)
    outer, inner = text.index("if T.if_then_else(i + 3 < 9"), text.index("P[i + 3]) >= 0")
    assert outer < inner < text.index("T.prefetch(W")


@pytest.mark.parametrize("features", [1, 7, 16, 33, 300])
@pytest.mark.parametrize("distance", [1, 4, 1000])
def test_results_stay(spmm, require_spmm, features, distance):
    builder = ScheduleBuilder(spmm(features)).prefetch(
        "csrmm", buffer="B", loop="j", distance=distance
    )
    require_spmm(builder.module, features)
    require_spmm(builder.module, features, rows=1, columns=1)
    split = builder.split("j", factors=(None, 4)).parallel("i")
    require_spmm(split.module, features)


NESTED = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        t: T.int64 = T.int64(P[vi])
        V[vi] = W[t]
        for j in T.serial(4):
            with T.block("inner"):
                vj = T.axis.reduce(4, j)
                V[vi] = V[vi] + W[T.int64(P[vi + vj])]
"""


def test_a_let_is_seen_through_and_blocks_inside_have_their_own_reads(program):
    builder = ScheduleBuilder(program(NESTED))
    module = builder.prefetch("outer", buffer="W", loop="i", distance=3).module
    assert diagnostics(module) == ()
    (prefetch,) = (node for node in walk(module) if isinstance(node, Prefetch))
    assert "T.prefetch(W, T.int64(P[i + 3]))" in body_text(module)
    assert prefetch.buffer == "W"


def test_several_reads_of_many_lines_have_loops_of_their_own(program):
    body = """
for i in T.serial(2):
    for j in T.serial(64):
        with T.block("sums"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = V[vi] + W[vi * 64 + vj] + W[vi * 64 + vj + 1]
"""
    module = (
        ScheduleBuilder(program(body)).prefetch("sums", buffer="W", loop="i", distance=1).module
    )
    assert diagnostics(module) == ()
    assert "i_line_1" in body_text(module)


def test_how_many_elements_there_are_is_said_of_the_later_iteration(program):
    body = """
for i in T.serial(7):
    with T.block("outer"):
        vi = T.axis.spatial(7, i)
        for j in T.serial(T.int64(P[vi + 1]) - T.int64(P[vi])):
            with T.block("inner"):
                vj = T.axis.reduce(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                V[vi] = V[vi] + W[T.int64(P[vi]) + vj]
"""
    module = (
        ScheduleBuilder(program(body)).prefetch("inner", buffer="W", loop="i", distance=1).module
    )
    assert diagnostics(module) == ()
    assert "T.int64(P[i + 1 + 1]) - T.int64(P[i + 1])" in body_text(module)


def test_elements_of_a_cache_that_say_what_to_ask_for_have_to_exist(program):
    body = """
for i in T.serial(8):
    with T.block("gather"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[T.int64(P[vi])]
"""
    builder = ScheduleBuilder(program(body)).cache_read("gather", buffer="P", scope="local")
    builder.prefetch("gather", buffer="W", loop="i", distance=8)
    assert "if i + 8 < 9:" in body_text(builder.module)


def test_what_the_loop_allocates_says_nothing_of_later_iterations(program):
    body = """
for i in T.serial(8):
    with T.block("gather"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[T.int64(P[vi])]
"""
    builder = ScheduleBuilder(program(body)).cache_read("gather", buffer="P", scope="local")
    builder.compute_at("gather_P_local", loop="i")
    with pytest.raises(ScheduleError) as caught:
        builder.prefetch("gather", buffer="W", loop="i", distance=1)
    assert caught.value.code == "schedule.prefetch.changing"


IDLE = """
for i in T.serial(7):
    for j in T.serial(n):
        with T.block("sum"):
            vi = T.axis.spatial(7, i)
            vj = T.axis.reduce(n, j)
            T.where(CONDITION)
            V[vi] = V[vi] + W[INDEX]
"""
BEYOND = {
    "a condition": ("P[vi * 5] >= T.int32(0)", "T.int64(P[vi])"),
    "a search": ("vi >= 0", "T.search('lower', P, begin=0, end=vi * 5, value=vi)"),
    "the end of a search": ("vi >= 0", "T.search('lower', P, begin=0, end=T.int64(P[vi * 5]), value=vi)"),
    "a number of elements": ("vi >= 0", "vi * T.int64(P[vi * 5])"),
}  # fmt: skip


@pytest.mark.parametrize(("condition", "index"), BEYOND.values(), ids=BEYOND)
def test_what_no_iteration_reads_is_not_read_to_ask_for_something(program, condition, index):
    body = IDLE.replace("CONDITION", condition).replace("INDEX", index)
    builder = ScheduleBuilder(program(body)).prefetch("sum", buffer="W", loop="i", distance=2)
    w = np.arange(64, dtype=np.float32)
    arguments = {
        "x": np.zeros((8, 8), np.float32), "y": np.zeros((8, 8), np.float32),
        "z": np.zeros((8, 8), np.float32), "v": w.copy(), "w": w, "p": np.zeros(9, np.int32),
    }  # fmt: skip
    wanted = {param.name for param in builder.module.functions[0].params}
    run(verify(builder.module), {name: arguments.get(name, 0) for name in wanted})
    assert arguments["v"].tolist() == w.tolist()


OWN_BUFFER = """
for i in T.serial(8):
    R = T.alloc_buffer((64,), "float32")
    with T.block("copy"):
        vi = T.axis.spatial(8, i)
        R[vi] = V[vi]
    with T.block("use"):
        wi = T.axis.spatial(8, i)
        W[wi] = R[wi]
"""
ROWS = {"buffer": "Y", "distance": 2}
COPIED = {"block": "copy", "buffer": "X", "distance": 2}
REFUSED = [
    ("prefetch.distance", COPY, {**COPIED, "loop": "i", "distance": 0}),
    ("prefetch.no_access", COPY, {**COPIED, "buffer": "V", "loop": "i"}),
    ("prefetch.no_access", BEHIND, {"block": "second", **ROWS, "loop": "i"}),
    ("prefetch.range", COPY.replace("X[vi, vj]", "X[vj, vi]"), {**COPIED, "loop": "i"}),
    ("prefetch.range", COPY.replace("X[vi, vj]", "X[vi, 2 * vj]"), {**COPIED, "loop": "i"}),
    ("prefetch.changing", OWN_BUFFER, {"block": "use", "buffer": "R", "loop": "i", "distance": 1}),
    ("prefetch.changing", FILLED, {"block": "gather", **ROWS, "loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("prefetch", arguments)) == code


SCATTERED_ROWS = """
for i in T.serial(7):
    for r in T.serial(EXTENT):
        for j in T.serial(8):
            with T.block("scatter"):
                vi, vr, vj = T.axis.remap("SSS", [i, r, j])
                T.where(T.int64(P[vi + vr]) >= 0 and T.int64(P[vi + vr]) < 8)
                Y[T.int64(P[vi + vr]), vj] = X[vi, vj]
"""


def test_the_row_that_a_later_iteration_stores_is_prefetched(program):
    module = program(SCATTERED_ROWS.replace("EXTENT", "1"))
    prefetching = apply(module, Step("prefetch", {"block": "scatter", "loop": "i", **ROWS})).module
    (ahead,) = {node.buffer for node in walk(prefetching) if isinstance(node, Prefetch)}
    assert ahead == "Y"
    assert "P[i + 2" in body_text(prefetching)
    rows = np.array([3, 1, 0, 2, 7, 5, 4, 6, 7], np.int32)
    x, y = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros((8, 8), np.float32)
    arguments = {"x": x, "y": y, "p": rows}
    arguments |= {"z": np.zeros_like(x), "v": np.zeros(64, x.dtype), "w": np.zeros(64, x.dtype)}
    wanted = {param.name for param in prefetching.functions[0].params}
    run(verify(prefetching), {name: arguments.get(name, 0) for name in wanted})
    assert y[rows[:7]].tolist() == x[:7].tolist()


def test_rows_of_several_iterations_inside_are_not_consecutive(program):
    module = program(SCATTERED_ROWS.replace("EXTENT", "2"))
    step = Step("prefetch", {"block": "scatter", "loop": "i", **ROWS})
    assert reason_of(apply, module, step) == "prefetch.range"
