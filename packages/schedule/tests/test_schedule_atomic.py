"""Iterations that share elements accumulate into them one after another, where that is all they do."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, parallel, replay

COMBINED = {"+": np.add, "max": np.maximum, "min": np.minimum}
SCATTER = """
@T.prim_func
def scatter(p: T.handle, a: T.handle, y: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    A = T.match_buffer(a, (n, 3), "DTYPE")
    Y = T.match_buffer(y, (m, 3), "DTYPE")
    for i in T.serial(n):
        for k in T.serial(3):
            with T.block("add"):
                vi, vk = T.axis.remap("KINDS", [i, k])
                Y[T.int64(P[vi]), vk] = COMBINED
"""
OPERANDS = ("Y[T.int64(P[vi]), vk]", "A[vi, vk]")


def scatter(op="+", *, dtype="float32", kinds="RS", operands=OPERANDS):
    lhs, rhs = operands
    value = f"T.{op}({lhs}, {rhs})" if op.isalpha() else f"{lhs} {op} {rhs}"
    texts = {"COMBINED": value, "DTYPE": dtype, "KINDS": kinds}
    text = SCATTER
    for name, put in texts.items():
        text = text.replace(name, put)
    return parse_module(text)


def require_scatter(module, op, *, count, rows=4):
    random = np.random.default_rng(count)
    places = random.integers(0, rows, count).astype(np.int32)
    terms = random.integers(-2, 3, (count, 3)).astype(np.float32)
    found = random.integers(-2, 3, (rows, 3)).astype(np.float32)
    expected = found.copy()
    COMBINED[op].at(expected, places, terms)
    values = {"p": places, "a": terms, "y": found, "n": count, "m": rows}
    run(verify(module), values, chunks=3)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op", COMBINED)
@pytest.mark.parametrize("kinds", ["RS", "SS"])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_a_scatter_is_accumulated_step_by_step(op, kinds, count):
    result = parallel(scatter(op, kinds=kinds), "i", accumulate="atomic")
    require_scatter(result.module, op, count=count)


def test_the_trace_and_the_loop_say_so():
    builder = ScheduleBuilder(scatter()).parallel("i", accumulate="atomic", grain=64)
    assert builder.trace[0].args == {"loop": "i", "accumulate": "atomic", "grain": 64}
    assert replay(scatter(), builder.trace) == builder.module
    (loop,) = builder.module.functions[0].body
    assert (loop.kind, loop.annotations) == ("parallel", (("atomic", True),))


def test_loops_below_are_scheduled_further():
    builder = ScheduleBuilder(scatter()).parallel("i", accumulate="atomic")
    builder.split("k", factors=(None, 2)).vectorize("k_1")
    require_scatter(builder.module, "+", count=11)


def test_the_mark_is_not_set_or_taken_away_by_hand():
    builder = ScheduleBuilder(scatter()).parallel("i", accumulate="atomic")
    with pytest.raises(ScheduleError, match="share elements") as caught:
        builder.unannotate("i", key="atomic")
    assert caught.value.code == "schedule.unannotate.needed"
    with pytest.raises(ScheduleError) as caught:
        builder.annotate("k", key="atomic", value=True)
    assert caught.value.code == "schedule.annotate.reserved"


def test_no_step_makes_a_copy_of_what_is_shared():
    builder = ScheduleBuilder(scatter()).parallel("i", accumulate="atomic")
    with pytest.raises(ScheduleError, match="no longer only accumulate into 'Y") as caught:
        builder.reindex_cache_write("add", buffer="Y", scope="local")
    assert caught.value.code == "schedule.reindex_cache_write.shared"


REFUSED = [
    ("not_atomic", scatter("*"), {}),
    ("parts", scatter(), {"parts": 4}),
    ("no_sum", scatter(operands=(OPERANDS[0], "Y[0, 0]")), {}),
    ("no_sum", scatter("-"), {}),
    ("grain", scatter(), {"grain": 0}),
    ("weight", scatter(), {"weight": "T.int64(P[i])"}),
]


@pytest.mark.parametrize(("reason", "module", "arguments"), REFUSED)
def test_what_no_atomic_step_does_is_refused(reason, module, arguments):
    with pytest.raises(ScheduleError) as caught:
        parallel(module, "i", accumulate="atomic", **arguments)
    assert caught.value.code == f"schedule.parallel.{reason}"


TOTALS = """
for k in T.serial(3):
    for i in T.vectorized(8):
        with T.block("total"):
            vk, vi = T.axis.remap("SS", [k, i])
            V[vk] = V[vk] + X[vi, vk]
"""


def test_lanes_that_meet_in_one_element_are_added_up_whatever_their_kind(program):
    serial = program(TOTALS.replace("vectorized", "serial"))
    result = ScheduleBuilder(serial).vectorize("i").module
    marked = TOTALS.replace(
        "            V[vk] =",
        '            T.block_attr({"reassociates": True})\n            V[vk] =',
    )
    assert result == program(marked)


def test_lanes_do_not_go_before_an_init_that_each_of_them_makes(program):
    text = TOTALS.replace("vectorized", "serial").replace(
        "            V[vk] =",
        "            with T.init():\n                V[vk] = 0.0\n            V[vk] =",
    )
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(program(text)).vectorize("i")
    assert caught.value.code == "schedule.vectorize.race"


def test_lanes_that_may_meet_say_what_they_need(program):
    text = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
    with pytest.raises(ScheduleError, match=r"Needed: T\.int64\(P\[i\]\) is the same for every i"):
        ScheduleBuilder(program(text)).vectorize("i")
