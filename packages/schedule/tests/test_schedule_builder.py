"""The builder: handles, traces as JSON and Python, errors that show the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_schedule import PRIMITIVES, ScheduleBuilder, examples
from gossamer_schedule.handles import forwarded


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code


def tiled() -> ScheduleBuilder:
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 2, 4))
    return builder.reorder("i", "k_0", "j", "k_1", "k_2").unroll("k_1")


def test_every_primitive_is_a_documented_method():
    for name, primitive in PRIMITIVES.items():
        assert getattr(ScheduleBuilder, name).__doc__ == primitive.__doc__ is not None


def test_every_primitive_is_in_the_table_of_the_readme():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    rows = "".join(line for line in readme.splitlines() if line.startswith("| `"))
    assert [name for name in PRIMITIVES if f"`{name}" not in rows] == []


def test_handles_follow_a_loop_that_is_split_twice():
    builder = ScheduleBuilder(examples.SPMM)
    _, _, k = builder.get_loops("csrmm")
    outer, inner = builder.split(k, factors=(None, 8)).names
    builder.split(inner, factors=(2, 4)).parallel("i")
    assert forwarded(k, builder._results) == ("k_0", "k_1_0", "k_1_1")
    assert builder.unroll("k_1_0").reorder("i", outer, "j").trace[-1].args["loops"] == (
        *("i", "k_0", "j"),
    )


def test_a_handle_of_several_loops_is_refused_and_they_are_listed():
    builder = ScheduleBuilder(examples.SPMM)
    (*_, k) = builder.get_loops()
    builder.split(k, factors=(None, 8))
    assert code_of(builder.unroll, k) == "schedule.handle.several"
    with pytest.raises(ScheduleError, match="k_0, k_1"):
        builder.unroll(k)


def test_a_handle_of_what_is_gone_is_refused(spmm):
    builder = ScheduleBuilder(spmm(8)).cache_write("csrmm", buffer="C", scope="local")
    row = builder.get_loops("csrmm_C_local")[0]
    builder.reverse_compute_at("csrmm_C_local", loop="i")
    assert code_of(builder.unroll, row) == "schedule.handle.gone"


def test_a_name_that_is_used_anew_is_not_what_the_handle_stood_for(spmm):
    builder = ScheduleBuilder(spmm(8)).split("k", factors=(2, 4))
    first = builder.names[0]
    builder.split("k_0", factors=(1, 2)).split("i", factors=(None, 3))
    assert forwarded(first, builder._results) == ("k_0_0", "k_0_1")


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
    "text", ["", "{}", '[{"op": 1, "args": {}}]', '[{"op": "split"}]', "\ud800"]
)
def test_text_that_is_no_trace_is_refused(text):
    assert code_of(ScheduleBuilder.from_json, examples.SPMM, text) == "schedule.trace.json"


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


def test_what_is_not_proved_shows_the_condition(program):
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
