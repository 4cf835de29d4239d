"""`loop_partition`: the parts run what the loop ran, in its order, for all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import BACKWARDS, COPY, NESTED_PARTS
from program_results import same
from refused import reason_of
from refused_programs import SHRINKING

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply, get_blocks, get_loops
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

EXTREME = (-(2**63), -(2**62), -1, 0, 1, 3, 4, 9, 2**62, 2**63 - 1)

COUNTED = """
for i in T.serial({extent}):
    V[i % 8] = V[i % 8] * 2.0 + T.float32(i)
"""


@pytest.mark.parametrize(
    "points", [("n",), ("n", 2), (3, "n", 5), ("n", "n - 1"), (2**63 - 1, "n")]
)
@pytest.mark.parametrize("extent", ["6", "0", "T.int64(P[5])", "T.int64(P[5]) - 7"])
@pytest.mark.parametrize("n", EXTREME)
def test_parts_run_what_the_loop_ran_in_its_order(program, points, extent, n):
    module = program(COUNTED.format(extent=extent))
    builder = ScheduleBuilder(module).loop_partition("i", points=points)
    assert get_loops(builder.module) == builder.names
    assert same(builder, module, n=n)


@pytest.mark.parametrize(
    ("extent", "point"), [("64", 32), ("64", 64), ("T.max(n, 3)", "n"), ("n", "n // 8 * 8")]
)
def test_a_point_that_is_proved_to_be_in_the_loop_needs_no_minimum(program, extent, point):
    module = program(
        "if n > 0:\n    " + COUNTED.format(extent=extent).strip().replace("\n", "\n    ")
    )
    text = print_module(ScheduleBuilder(module).loop_partition("i", points=(point,)).module)
    assert "T.min" not in text


@pytest.mark.parametrize("start", ["3", "-2", "n", "T.int64(P[5])"])
@pytest.mark.parametrize("n", [-3, 0, 2, 100])
def test_a_loop_that_starts_elsewhere_is_parted_by_its_iterations(program, start, n):
    module = program(COUNTED.format(extent=f"{start}, 6"))
    builder = (
        ScheduleBuilder(module)
        .loop_partition("i", points=(2, "n"))
        .loop_partition("i_1", points=(1,))
    )
    assert same(builder, module, n=n)


@pytest.mark.parametrize("n", [*EXTREME[:8], 40])
def test_a_main_loop_is_whole_vectors_and_a_tail_is_left(n):
    builder = ScheduleBuilder(examples.SCALE).loop_partition("i", points=("n // 8 * 8",))
    builder.split("i_0", factors=(None, 8)).unroll("i_0_1")
    assert "T.where" not in body_text(builder.module)
    x, y = np.arange(max(n, 0), dtype=np.float32), np.zeros(max(n, 0), np.float32)
    if n >= 0:
        run(verify(builder.module), {"x": x, "y": y, "n": n})
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize("features", [0, 1, 7])
@pytest.mark.parametrize(
    ("loop", "points"),
    [
        ("i", (2, 3)), ("i", ("m // 2",)), ("k", (1,)), ("k", ("K // 4 * 4",)),
        ("j", (1,)), ("j", (0, 2)), ("j", ("i",)), ("j", ("T.int64(J_indptr[i])",)),
    ],
)  # fmt: skip
def test_a_product_of_parts(spmm, require_spmm, features, loop, points):
    builder = ScheduleBuilder(spmm()).loop_partition(loop, points=points)
    require_spmm(builder.module, features)
    require_spmm(builder.module, features, rows=1, columns=9)


def test_only_the_first_part_of_a_reduction_initializes(program):
    module = ScheduleBuilder(examples.ROW_SUM).loop_partition("j", points=(4,)).module
    assert body_text(module).count("T.init()") == 1
    assert get_blocks(module) == ("row_sum_0", "row_sum_1")


MEETING_INITS = """
for j in T.serial(4):
    for i in T.serial(4):
        with T.block("first"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 1.0
            V[vi] = V[vi] + X[vi, vj]
        with T.block("second"):
            ui, uj = T.axis.remap("SR", [i, j])
            with T.init():
                V[ui + 2] = 5.0
            V[ui + 2] = V[ui + 2] + X[ui, uj]
"""


def test_inits_of_two_blocks_keep_their_order(program):
    builder = ScheduleBuilder(program(MEETING_INITS))
    assert reason_of(builder.loop_partition, "i", points=(2,)) == "loop_partition.not_proved"
    module = program(MEETING_INITS.replace("V[ui + 2]", "W[ui]"))
    assert same(ScheduleBuilder(module).loop_partition("i", points=(2,)), module)


@pytest.mark.parametrize("points", [(0,), (1, 1, 5), ("n - 4",), (2**62,)])
def test_whatever_a_loop_holds_is_copied_under_other_names(program, points):
    module = program(NESTED_PARTS)
    builder = ScheduleBuilder(module)
    use = builder.get_blocks()[1]
    builder.loop_partition("i", points=points)
    assert same(builder, module)
    assert reason_of(builder.annotate, use, key="note", value=1) == "handle.ambiguous"


MEETING = """
for t in T.serial(4):
    for i in T.serial(4):
        with T.block("sum"):
            vt, vi = T.axis.remap("SS", [t, i])
            with T.init():
                V[%s] = 0.0
            V[%s] = V[%s] + X[vt, vi]
"""


def test_copies_that_begin_one_sum_anew_are_refused(program):
    builder = ScheduleBuilder(program(MEETING % ("vi", "vi", "vi")))
    refused = reason_of(builder.loop_version, "sum", condition="i < t")
    assert refused == "loop_version.not_proved"
    refused = reason_of(builder.loop_partition, "i", points=("t",))
    assert refused == "loop_partition.not_proved"
    builder = ScheduleBuilder(program(MEETING % ("vt + vi", "vt + vi", "vt + vi")))
    assert reason_of(builder.loop_version, "sum", condition="i < 2") == "loop_version.not_proved"
    assert reason_of(builder.loop_partition, "i", points=(2,)) == "loop_partition.not_proved"


def test_copies_that_begin_sums_of_their_own_agree(program):
    module = program(MEETING % ("vi", "vi", "vi"))
    assert same(ScheduleBuilder(module).loop_version("sum", condition="i < 2"), module)
    assert same(ScheduleBuilder(module).loop_partition("i", points=(2,)), module)


def test_positions_are_parted_and_versioned(require_spmm):
    builder = ScheduleBuilder(examples.SPMM_POSITION).loop_partition(
        "j", points=("T.int64(J_indptr[i])", 2)
    )
    builder.loop_version("k_0", condition="width == 3").add_unit_loop("csrmm_1")
    require_spmm(builder.module, 3)
    require_spmm(builder.module, 4)


SHARED_NAME = """
for i in T.serial(n):
    with T.block("n"):
        vi = T.axis.spatial(n, i)
        V[vi] = W[vi] * T.float32(n)
"""


def test_a_block_may_have_the_name_of_a_parameter(program):
    module = program(SHARED_NAME)
    assert same(ScheduleBuilder(module).loop_partition("i", points=(2,)), module)
    assert same(ScheduleBuilder(module).loop_version("n", condition="n == 7"), module)


REFUSED = [
    ("loop_partition.points", COPY, {"loop": "i", "points": ()}),
    ("loop_partition.points", COPY, {"loop": "i", "points": (-1,)}),
    ("loop_partition.points", COPY, {"loop": "i", "points": (2**63,)}),
    ("loop_partition.points", COPY, {"loop": "i", "points": (4, "n", 2)}),
    ("loop_partition.points", COPY, {"loop": "i", "points": ("X[0, 0]",)}),
    ("loop_partition.text", COPY, {"loop": "i", "points": ("j",)}),
    ("loop_partition.not_proved", COPY, {"loop": "i", "points": ("T.int64(P[n])",)}),
    ("loop_partition.not_proved", SHRINKING, {"loop": "i", "points": (1,)}),
    ("loop_partition.not_proved", BACKWARDS, {"loop": "i", "points": (1,)}),
    ("loop_partition.not_proved", BACKWARDS, {"loop": "j", "points": ("i",)}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("loop_partition", arguments)) == code


UNWRITTEN = """
R = T.alloc_buffer((8,), "float32", scope="local")
for j in T.serial(n):
    V[j % 8] = T.if_then_else(n > 8, R[j % 8], 2.0)
"""


def test_a_local_buffer_that_nothing_writes_stays_one(program):
    module = program(UNWRITTEN)
    builder = ScheduleBuilder(module).loop_partition("j", points=(3,))
    assert print_module(builder.module).count('scope="local"') == 1
    assert same(builder, module, n=6)
