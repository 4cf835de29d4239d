"""`parallel` with atomic updates: iterations only accumulate into the elements that they share."""

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
    sums = random.integers(-2, 3, (rows, 3)).astype(np.float32)
    expected = sums.copy()
    COMBINED[op].at(expected, places, terms)
    values = {"p": places, "a": terms, "y": sums, "n": count, "m": rows}
    run(verify(module), values, chunks=3)
    np.testing.assert_array_equal(sums, expected)


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
    assert (loop.kind, loop.annotations) == ("parallel", (("atomic", "Y"),))


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


def test_a_mark_without_names_is_about_all_that_is_written():
    text = SCATTER.replace("T.serial(n)", 'T.parallel(n, annotations={"atomic": True})')
    for name, put in {"COMBINED": " + ".join(OPERANDS), "DTYPE": "float32", "KINDS": "RS"}.items():
        text = text.replace(name, put)
    builder = ScheduleBuilder(parse_module(text))
    with pytest.raises(ScheduleError, match="no longer only accumulate into 'Y") as caught:
        builder.reindex_cache_write("add", buffer="Y", scope="local")
    assert caught.value.code == "schedule.reindex_cache_write.shared"


def test_terms_are_added_up_in_an_own_buffer_first():
    builder = ScheduleBuilder(scatter())
    _, copy, *_ = builder.reindex_cache_write("add", buffer="Y", scope="local").names
    builder.reverse_compute_at(copy, loop="i").parallel("i", accumulate="atomic")
    (loop,) = builder.module.functions[0].body
    assert (loop.annotations, len(loop.body)) == ((("atomic", "Y"),), 2)
    require_scatter(builder.module, "+", count=30)


def test_a_copy_does_not_move_into_a_loop_that_runs_in_parallel():
    builder = ScheduleBuilder(scatter())
    _, copy, *_ = builder.reindex_cache_write("add", buffer="Y", scope="global").names
    builder.parallel("i")
    with pytest.raises(ScheduleError) as caught:
        builder.reverse_compute_at(copy, loop="i")
    assert caught.value.code == "schedule.reverse_compute_at.kind"


def test_elements_of_one_iteration_are_not_marked_atomic(program):
    module = program("""
for i in T.serial(8):
    with T.block("add"):
        vi = T.axis.reduce(8, i)
        V[vi] = V[vi] + W[vi]
""")
    result = parallel(module, "i", accumulate="atomic").module
    assert result == parallel(module, "i").module


REFUSED = [
    ("parallel.not_atomic", scatter("*"), {}),
    ("parallel.no_reduction", scatter(operands=(OPERANDS[0], "Y[0, 0]")), {}),
    ("parallel.no_reduction", scatter("-"), {}),
    ("parallel.grain", scatter(), {"grain": 0}),
    ("parallel.weight", scatter(), {"weight": "T.int64(P[i])"}),
]


@pytest.mark.parametrize(("code", "module", "arguments"), REFUSED)
def test_what_no_atomic_step_does_is_refused(code, module, arguments):
    with pytest.raises(ScheduleError) as caught:
        parallel(module, "i", accumulate="atomic", **arguments)
    assert caught.value.code == f"schedule.{code}"


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


def test_lanes_that_may_conflict_say_what_they_need(program):
    text = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
    with pytest.raises(ScheduleError, match=r"Needed: T\.int64\(P\[i\]\) is the same for every i"):
        ScheduleBuilder(program(text)).vectorize("i")


SEVERAL = """
@T.prim_func
def several(p: T.handle, a: T.handle, y: T.handle, z: T.handle, s: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    A = T.match_buffer(a, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    Z = T.match_buffer(z, (n,), "float32")
    S = T.match_buffer(s, (1,), "float32")
    OTHER
    for i in T.serial(n):
        BODY
"""
ACCUMULATING = "Y[T.int64(P[i])] = Y[T.int64(P[i])] + A[i]"


def several(*body, other=""):
    text = SEVERAL.replace("BODY", "\n        ".join(body)).replace("OTHER", other)
    return parse_module(text)


def test_iterations_share_some_buffers_and_not_others():
    body = (ACCUMULATING, "Z[i] = A[i] * 2.0", "S[0] = T.max(S[0], Z[i])")
    builder = ScheduleBuilder(several(*body)).parallel("i", accumulate="atomic")
    (loop,) = builder.module.functions[0].body
    assert loop.annotations == (("atomic", "S, Y"),)


ILLEGAL = {
    "an element is overwritten": (ACCUMULATING, "S[0] = A[i]"),
    "a sum is read while it grows": (ACCUMULATING, "Z[i] = Y[i]"),
    "a sum decides": (ACCUMULATING, "if Y[i] > 0.0:", "    Z[i] = 1.0"),
    "a sum ends a loop": (ACCUMULATING, "while Y[0] < 3.0:", "    Z[i] = Z[i] + Y[0]"),
    "one is added, another subtracted": (
        ACCUMULATING,
        "Y[T.int64(P[i])] = Y[T.int64(P[i])] - A[i]",
    ),
    "one is added, of another the most is taken": (
        ACCUMULATING,
        "Y[T.int64(P[i])] = T.max(Y[T.int64(P[i])], A[i])",
    ),
    "another element of the sum is added": ("Y[T.int64(P[i])] = Y[T.int64(P[i])] + Y[0] * A[i]",),
    "the sum goes into another element": ("Y[T.int64(P[i])] = Y[0] + A[i]",),
    "a row is a workspace of all iterations": (
        "S[0] = 0.0",
        "S[0] = S[0] + A[i]",
        "Y[T.int64(P[i])] = Y[T.int64(P[i])] + S[0]",
    ),
    "the next element is read": (ACCUMULATING, "Z[i] = A[i]", "S[0] = S[0] + Z[i + 1]"),
    "the sum starts again": (
        'with T.block("add"):',
        "    vi = T.axis.reduce(n, i)",
        "    with T.init():",
        "        S[0] = 0.0",
        "    S[0] = S[0] + A[vi]",
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_elements_with_other_accesses_are_not_made_atomic(name):
    with pytest.raises(ScheduleError, match="more to them") as caught:
        parallel(several(*ILLEGAL[name]), "i", accumulate="atomic")
    assert caught.value.code == "schedule.parallel.no_reduction"


def test_a_sum_under_another_name_is_the_same_sum():
    other = 'Y2 = T.match_buffer(y, (m,), "float32")'
    module = several(ACCUMULATING, "Z[i] = Y2[i]", other=other)
    with pytest.raises(ScheduleError) as caught:
        parallel(module, "i", accumulate="atomic")
    assert caught.value.code == "schedule.parallel.no_reduction"


def test_the_hint_names_the_step_that_helps():
    with pytest.raises(ScheduleError, match="reindex_cache_write, then reverse_compute_at"):
        parallel(several(*ILLEGAL["an element is overwritten"]), "i", accumulate="atomic")
    with pytest.raises(ScheduleError, match="decompose_reduction to block 'add' with loop='i'"):
        parallel(several(*ILLEGAL["the sum starts again"]), "i", accumulate="atomic")
    builder = ScheduleBuilder(several(*ILLEGAL["the sum starts again"]))
    builder.decompose_reduction("add", loop="i").parallel("i", accumulate="atomic")
    values = {"p": np.zeros(9, np.int32), "a": np.arange(9, dtype=np.float32), "n": 9, "m": 1}
    values |= {"y": np.zeros(1, np.float32), "z": np.zeros(9, np.float32)}
    values["s"] = np.full(1, 7, np.float32)
    run(verify(builder.module), values, chunks=3)
    assert values["s"][0] == 36
