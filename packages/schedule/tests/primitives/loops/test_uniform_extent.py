"""`uniform_extent`: programs before and after, rows in lanes, and programs that it refuses."""
# ruff: noqa: E501  (scripts have no line breaks inside an expression)

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import COPY, RAGGED
from program_results import same
from refused import reason_of
from refused_programs import TRIANGLE

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit.examples import ROW_SUM

VECTORS = """
for i in T.serial(8):
    for j in T.serial((i + 4) // 4):
        for k in T.serial(4):
            with T.block("lower"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(vi + 1, j * 4 + k)
                T.where(j * 4 + k < i + 1)
                Y[vi, vj] = X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "an extent without loads": (
        TRIANGLE, {"loop": "j", "over": "i"}, ("j_extent", "j_longest", "i_c"),
        """
for i_c in T.serial(8):
    with T.block("j_longest"):
        vi_c = T.axis.reduce(8, i_c)
        with T.init():
            j_extent[0] = 0
        j_extent[0] = T.max(j_extent[0], vi_c + 1)
for i in T.serial(8):
    for j in T.serial(j_extent[0]):
        with T.block("lower"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(vi + 1, j)
            T.where(vj < vi + 1)
            Y[vi, vj] = X[vi, vj]
""",
    ),
    "rows by their offsets": (
        RAGGED, {"loop": "j", "over": "i"}, ("j_extent", "j_longest", "i_c"),
        """
for i_c in T.serial(8):
    with T.block("j_longest"):
        vi_c = T.axis.reduce(8, i_c)
        with T.init():
            j_extent[0] = 0
        j_extent[0] = T.max(j_extent[0], T.int64(P[vi_c + 1]) - T.int64(P[vi_c]))
for i in T.serial(8):
    for j in T.serial(j_extent[0]):
        with T.block("scale"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
            T.where(vj < T.int64(P[vi + 1]) - T.int64(P[vi]))
            V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "an extent that is an expression": (
        RAGGED.replace("T.serial(8)", "T.serial(2)"), {"loop": "j", "over": "i", "inline": True}, ("j",),
        """
for i in T.serial(2):
    for j in T.serial(T.max(T.int64(P[1]) - T.int64(P[0]), T.int64(P[2]) - T.int64(P[1]))):
        with T.block("scale"):
            vi = T.axis.spatial(2, i)
            vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
            T.where(vj < T.int64(P[vi + 1]) - T.int64(P[vi]))
            V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "a predicate that skips the iterations past the end": (
        VECTORS, {"loop": "j", "over": "i"}, ("j_extent", "j_longest", "i_c"),
        """
for i_c in T.serial(8):
    with T.block("j_longest"):
        vi_c = T.axis.reduce(8, i_c)
        with T.init():
            j_extent[0] = 0
        j_extent[0] = T.max(j_extent[0], (vi_c + 4) // 4)
"""
        + VECTORS.lstrip().replace("(i + 4) // 4", "j_extent[0]"),
    ),
}  # fmt: skip
NEGATIVE = TRIANGLE.replace("T.serial(i + 1)", "T.serial(i - 20)")
CONDITION_BETWEEN = (
    RAGGED.replace("    for j in", "    if P[i] > 3:\n        for j in")
    .replace("\n        with", "\n            with")
    .replace("\n            v", "\n                v")
    .replace("\n            V", "\n                V")
)
BOTH = """
for i in T.serial(4):
    for k in T.serial(2):
        for j in T.serial(i + k):
            with T.block("copy"):
                vi, vk, vj = T.axis.remap("SSS", [i, k, j])
                Y[vi * 2 + vk, vj] = X[vi * 2 + vk, vj]
"""
INSIDE_RAGGED = """
for h in T.serial(2):
    for i in T.serial(T.int64(P[h])):
        for k in T.serial(2):
            for j in T.serial(i + k):
                with T.block("count"):
                    vh, vi, vk, vj = T.axis.remap("RRRR", [h, i, k, j])
                    V[0] = V[0] + 1.0
"""
CHANGING = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i])):
        with T.block("follow"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi] = 1
"""
INIT_BEFORE = """
for k in T.serial(3):
    for i in T.serial(8):
        for j in T.serial(i + 1):
            with T.block("sum"):
                vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                with T.init():
                    Y[vi, vj] = 0.0
                Y[vi, vj] = Y[vi, vj] + X[vi, vj]
"""
REFUSED = [
    ("uniform_extent.kind", TRIANGLE.replace("for i in T.serial", "for i in T.unroll"), {"loop": "j", "over": "i"}),
    ("uniform_extent.start", TRIANGLE.replace("T.serial(8)", "T.serial(1, 8)"), {"loop": "j", "over": "i"}),
    ("uniform_extent.not_nested", TRIANGLE, {"loop": "i", "over": "j"}),
    ("uniform_extent.not_nested", CONDITION_BETWEEN, {"loop": "j", "over": "i"}),
    ("uniform_extent.uniform", COPY, {"loop": "j", "over": "i"}),
    ("uniform_extent.dependence", BOTH, {"loop": "j", "over": "i"}),
    ("uniform_extent.extent", INSIDE_RAGGED, {"loop": "j", "over": "k"}),
    ("uniform_extent.not_proved", CHANGING, {"loop": "j", "over": "i"}),
    ("uniform_extent.init", INIT_BEFORE, {"loop": "j", "over": "i"}),
    ("uniform_extent.inline", TRIANGLE.replace("T.serial(8)", "T.serial(9)"), {"loop": "j", "over": "i", "inline": True}),
    ("uniform_extent.inline", TRIANGLE.replace("T.serial(8)", "T.serial(n)"), {"loop": "j", "over": "i", "inline": True}),
]  # fmt: skip


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("uniform_extent", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("uniform_extent", arguments)) == code


def test_a_reduction_whose_init_is_apart_may_run_before_the_loop(program):
    module = program(INIT_BEFORE)
    builder = ScheduleBuilder(module).decompose_reduction("sum", loop="k")
    assert same(builder.uniform_extent("j", over="i"), module)


def test_the_extent_depends_on_loops_outside(program):
    builder = ScheduleBuilder(program(BOTH)).uniform_extent("j", over="k")
    (buffer,) = (buffer for buffer in builder.module.functions[0].buffers if buffer.handle is None)
    assert buffer.name == "j_extent"
    assert [extent.text for extent in buffer.shape] == ["4"]


def row_sums(module, lengths):
    """The sums of rows 1 + 2 + ... of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.concatenate([np.arange(1, length + 1) for length in lengths] or [[]])
    sums = np.full(len(lengths), 77.0, np.float32)
    arrays = {"a": values.astype(np.float32), "y": sums, "m": len(lengths), "nnz": len(values)}
    function = module.functions[0]
    arguments = {param.name: arrays.get(param.name, offsets) for param in function.params}
    run(verify(module), arguments)
    return sums.tolist()


@pytest.mark.parametrize("lengths", [[], [0], [3], [0, 5, 1, 0, 0, 2, 2], [1] * 8 + [0] * 5])
def test_rows_of_any_length_run_in_lanes(lengths):
    builder = ScheduleBuilder(ROW_SUM).split("i", factors=(None, 4))
    builder.cache_write("row_sum", buffer="Y", scope="local")
    builder.reverse_compute_at("row_sum_Y_local", loop="i_0")
    builder.uniform_extent("j", over="i_1").reorder("j", "i_1")
    builder.decompose_reduction("row_sum", loop="j")
    for loop in ("i_1_c", "i_1_init", "i_1", "i_c"):
        builder.vectorize(loop)
    builder.parallel("i_0")
    assert row_sums(builder.module, lengths) == [n * (n + 1) / 2 for n in lengths]


@pytest.mark.parametrize(
    "lengths", [[], [0], [9], [0, 5, 1, 0, 0, 2, 2], [4] * 8 + [8, 3, 0, 0, 1]]
)
def test_rows_of_any_length_run_side_by_side(lengths):
    builder = ScheduleBuilder(ROW_SUM).split("j", factors=(None, 4)).rfactor("j_1", axis=1)
    builder.reverse_compute_at("row_sum", loop="i").set_scope("Y_rf", scope="local")
    builder.split("i", factors=(None, 3)).fission("i_1")
    builder.uniform_extent("j_0", over="i_1_0", inline=True).reorder("j_0", "i_1_0")
    builder.decompose_reduction("row_sum_rf", loop="j_0")
    for loop in ("j_1_init", "j_1", "j_1_c"):
        builder.vectorize(loop)
    builder.unroll("i_1_0").parallel("i_0")
    assert row_sums(builder.module, lengths) == [n * (n + 1) / 2 for n in lengths]


def test_iterations_past_the_end_that_a_predicate_reads_for_are_skipped(program):
    """The predicate reads by the loop: its bound must hold before."""
    read = VECTORS.replace("j * 4 + k < i + 1", "j * 4 + k < i + 1 and T.int64(P[j]) >= 0")
    module = ScheduleBuilder(program(read)).uniform_extent("j", over="i").module
    assert "T.if_then_else(" in print_module(module)
