"""The schedule builder: traces as JSON and as Python, copies, undoing, errors that show the program."""

from __future__ import annotations

import numpy as np
import pytest
from refused import code_of

from gossamer_ir.core.build import index
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_schedule import ScheduleBuilder, split
from gossamer_testkit import examples


def tiled() -> ScheduleBuilder:
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 2, 4))
    return builder.reorder("i", "k_0", "j", "k_1", "k_2").unroll("k_1")


def test_a_trace_as_json_makes_the_same_module_again():
    builder = tiled()
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json())
    assert (again.module, again.trace) == (builder.module, builder.trace)


def test_a_trace_as_python_makes_the_same_module_again():
    builder = tiled()
    names: dict = {}
    exec(builder.to_python(), names)
    assert names["schedule"](ScheduleBuilder(examples.SPMM)).trace == builder.trace


@pytest.mark.parametrize(
    "text",
    ["", "{}", '[{"op": 1, "args": {}}]', '[{"op": "split"}]', "\ud800", b"", b"\xff", None, 7, []],
)
def test_text_that_is_no_trace_is_refused(text):
    assert code_of(ScheduleBuilder.from_json, examples.SPMM, text) == "schedule.trace.json"


@pytest.mark.parametrize(
    ("text", "shown"), [(3, "3"), (None, "a value of type NoneType"), ([], "[]")]
)
def test_a_trace_that_is_neither_text_nor_bytes_is_named(text, shown):
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder.from_json(examples.SPMM, text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == f"The trace is {shown}; expected JSON as text or bytes."


def test_show_prints_the_program_and_the_steps():
    shown = tiled().show()
    assert "for k_1 in T.unroll(2):" in shown
    assert "sch.reorder('i', 'k_0', 'j', 'k_1', 'k_2')" in shown


def test_a_refusal_leaves_the_builder_as_it_was():
    builder = tiled()
    before = builder.module
    assert code_of(builder.parallel, "j") == "schedule.parallel.race"
    assert builder.module is before
    assert len(builder.trace) == 3


def test_a_refusal_shows_the_function_with_the_place_underlined(spmm):
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(spmm(4)).vectorize("i")
    lines = str(caught.value).splitlines()
    at = next(number for number, line in enumerate(lines) if "^^^" in line)
    assert lines[at - 1].strip() == "for i in T.serial(m):"
    assert lines[at] == lines[at - 1][:4] + "^" * len("for i in T.serial(m):")
    assert any("def spmm(" in line for line in lines)


def test_a_race_is_shown_by_two_iterations(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("diagonals"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi + vj] = X[vi, vj]
""")
    with pytest.raises(ScheduleError, match=r"\(i = 0, j = 1\) and \(i = 1, j = 0\)") as caught:
        ScheduleBuilder(module).parallel("i")
    assert caught.value.code == "schedule.parallel.race"


def test_an_error_of_the_builder_shows_the_condition_that_is_not_proved(program):
    module = program("""
for i in T.serial(8):
    with T.block("scatter"):
        vi = T.axis.spatial(8, i)
        V[T.int64(P[vi])] = W[vi]
""")
    needed = r"Needed: T.int64\(P\[i\]\) != T.int64\(P\[i_other\]\) wherever i != i_other\."
    with pytest.raises(ScheduleError, match=needed) as caught:
        ScheduleBuilder(module).parallel("i")
    assert caught.value.code == "schedule.parallel.not_proved"


def test_look_ups_follow_the_data():
    builder = ScheduleBuilder(examples.STAGED)
    assert builder.get_producers("scale") == builder.get_child_blocks("j") == ("fetch",)
    assert builder.get_consumers("fetch") == builder.get_child_blocks("k") == ("scale",)
    assert builder.get_producers("fetch") == builder.get_consumers("scale") == ()
    (fetch,) = builder.get_producers("scale")
    assert builder.get_loops(fetch) == ("i", "j")
    assert code_of(builder.get_producers, "nowhere") == "schedule.get_producers.no_block"
    assert code_of(builder.get_child_blocks, "nowhere") == "schedule.get_child_blocks.no_name"


def test_a_trace_is_read_from_bytes_too():
    builder = tiled()
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json().encode())
    assert again.module == builder.module


@pytest.mark.parametrize("module", ["def f(): pass", None, 7, b"", Step("split", {})])
def test_what_is_not_a_module_is_refused(module):
    assert code_of(ScheduleBuilder, module) == "schedule.module"
    assert code_of(split, module, "i", factors=(2,)) == "schedule.module"


@pytest.mark.parametrize("trace", ["[]", None, 7, [{"op": "unroll"}], ("unroll",)])
def test_what_is_not_a_trace_is_refused(trace):
    assert code_of(ScheduleBuilder(examples.SPMM).replay, trace) == "schedule.trace.steps"


WRONG = [
    ("split", ("k",), {"factors": 8}),
    ("split", ("k",), {"factors": "8"}),
    ("split", ("k",), {"factors": (None, 2.5)}),
    ("split", ("k",), {"factors": (None, True)}),
    ("split", ("k",), {"factors": {8}}),
    ("split", (7,), {"factors": (None, 8)}),
    ("split", ("k",), {}),
    ("split", ("k", (None, 8)), {}),
    ("split", ("k",), {"loop": "k", "factors": (None, 8)}),
    ("split", ("k",), {"factors": (None, 8), "function": 7}),
    ("split", ("k",), {"factors": np.array([2.0, 4.0])}),
    ("reorder", ("k", 7), {}),
    ("reorder", (["k", "j"],), {}),
    ("unroll", (None,), {}),
    ("unroll", ("k",), {"intrinsics": ()}),
    ("unroll", ("k",), {"module": 7}),
    ("bind", ("k",), {"thread": b"threadIdx.x"}),
    ("annotate", ("k",), {"key": "note", "value": object()}),
]


@pytest.mark.parametrize(("op", "args", "keywords"), WRONG)
def test_arguments_of_wrong_kinds_are_refused(op, args, keywords):
    builder = ScheduleBuilder(examples.SPMM)
    assert code_of(getattr(builder, op), *args, **keywords) == "schedule.replay.arguments"
    assert builder.trace == ()


@pytest.mark.parametrize("factors", [[None, 8], (None, np.int64(8)), [None, np.uint8(8)]])
def test_lists_and_integers_of_numpy_are_taken(factors):
    plain = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=factors)
    assert (builder.module, builder.trace) == (plain.module, plain.trace)
    assert split(examples.SPMM, "k", factors=factors).module == plain.module
    assert ScheduleBuilder.from_json(examples.SPMM, builder.to_json()).module == plain.module


def test_a_copy_goes_on_by_itself():
    builder = tiled()
    other = builder.copy().parallel("i")
    assert len(other.trace) == len(builder.trace) + 1
    assert builder.parallel("i").module == other.module


def test_steps_are_undone():
    builder = tiled()
    before, trace = builder.module, builder.trace
    assert builder.parallel("i").undo().module is before
    assert builder.trace == trace
    assert builder.undo(3).module is examples.SPMM
    assert builder.undo(0).trace == ()
    assert builder.split("k", factors=(None, 8)).names == ("k_0", "k_1")


@pytest.mark.parametrize("steps", [4, -1, None, "1", 1.0, True])
def test_steps_that_were_not_taken_are_not_undone(steps):
    builder = tiled()
    assert code_of(builder.undo, steps) == "schedule.undo.steps"
    assert len(builder.trace) == 3


FUSED = """
@T.prim_func
def scale(a: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
        A[i, j] = A[i, j] * 2.0
"""


def test_a_builder_without_passes_does_not_lower():
    assert code_of(ScheduleBuilder(parse_module(FUSED)).lower) == "schedule.lower.no_passes"
    assert code_of(ScheduleBuilder(examples.SPMM).lower) == "schedule.lower.last"
    trace = '[{"op": "lower_buffers", "args": {}}]'
    assert code_of(ScheduleBuilder.from_json, examples.SPMM, trace) == "schedule.lower.stage"


def test_parts_of_a_sum_are_lanes_as_rows_and_as_columns():
    for axis in (0, 1):
        builder = ScheduleBuilder(examples.ROW_SUM).split("j", factors=(None, 4))
        builder.rfactor("j_1", axis=axis).vectorize("j_1")
        kinds = [(loop.var, loop.kind) for loop in collect(For, builder.module)]
        assert ("j_1", "vectorized") in kinds
        buffers = {buffer.name: buffer for buffer in builder.module.functions[0].buffers}
        assert buffers["Y_rf"].shape[axis] == index(4)


def test_a_builder_gives_its_schedule():
    assert tiled().schedule == Schedule(loop=tiled().trace)
    assert ScheduleBuilder(examples.SPMM).schedule == Schedule()
