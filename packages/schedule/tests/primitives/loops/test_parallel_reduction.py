"""`parallel_reduction` with private copies of shared elements, or with one segment after the other."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from refused_programs import PARALLEL

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, parallel_reduction, replay

FORMS = ("privatized", "segmented")
COMBINED = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}
SCATTER = """
@T.prim_func
def scatter(p: T.handle, a: T.handle, y: T.handle, n: T.int64, m: T.int64, K: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    A = T.match_buffer(a, (n, K), "float32")
    Y = T.match_buffer(y, (m, K), "float32")
    T.assume(in_range(P, 0, m))
    T.assume(monotone(P))
    for i in T.serial(n):
        for k in T.serial(K):
            with T.block("add"):
                vi, vk = T.axis.remap("RS", [i, k])
                Y[T.int64(P[vi]), vk] = COMBINED
"""
OPERANDS = ("Y[T.int64(P[vi]), vk]", "A[vi, vk]")


def scatter(op: str = "+", *, is_sorted: bool = True):
    lhs, rhs = OPERANDS
    value = f"T.{op}({lhs}, {rhs})" if op.isalpha() else f"{lhs} {op} {rhs}"
    text = SCATTER.replace("COMBINED", value)
    return parse_module(text if is_sorted else text.replace("    T.assume(monotone(P))\n", ""))


def require_scatter(module, op: str, *, count: int, rows: int = 6, is_sorted: bool = True) -> None:
    random = np.random.default_rng(count)
    rows_of = random.integers(0, rows, count).astype(np.int32)
    rows_of = np.sort(rows_of) if is_sorted else rows_of
    terms = random.integers(-2, 3, (count, 3)).astype(np.float32)
    sums = random.integers(-2, 3, (rows, 3)).astype(np.float32)
    expected = sums.copy()
    COMBINED[op].at(expected, rows_of, terms)
    sizes = {"n": count, "m": rows, "K": 3}
    run(verify(module), {"p": rows_of, "a": terms, "y": sums} | sizes)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", COMBINED)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 30])
def test_parts_combine_to_the_same(form, op, count):
    result = parallel_reduction(scatter(op), "i", form=form, parts=4)
    require_scatter(result.module, op, count=count)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("arguments", [{}, {"parts": 2}, {"parts": 5}])
def test_all_terms_of_one_element_in_several_parts(form, arguments):
    result = parallel_reduction(scatter(), "i", form=form, **arguments)
    require_scatter(result.module, "+", count=20, rows=1)
    require_scatter(result.module, "+", count=20, rows=2)


def test_elements_in_any_order_are_privatized():
    result = parallel_reduction(scatter(is_sorted=False), "i")
    require_scatter(result.module, "+", count=25, is_sorted=False)


def test_the_trace_records_the_form():
    builder = ScheduleBuilder(scatter())
    (i, _) = builder.get_loops("add")
    names = builder.parallel_reduction(i, form="segmented", parts=3).names
    assert names == ("i_0", "i_1", "add_fill", "add_carry", "add_combine")
    assert builder.trace[0].args == {"loop": "i", "form": "segmented", "parts": 3}
    assert replay(scatter(), builder.trace) == builder.module
    builder.parallel("p_c")
    require_scatter(builder.module, "+", count=9)


def test_a_total_is_privatized_part_by_part():
    module = parse_module("""
@T.prim_func
def total(a: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (n,), "float32")
    Y = T.match_buffer(y, (1,), "float32")
    for i in T.serial(n):
        with T.block("total"):
            vi = T.axis.reduce(n, i)
            Y[0] = Y[0] + A[vi]
""")
    with pytest.raises(ScheduleError, match="Needed: an index of the element follows the loop"):
        parallel_reduction(module, "i", form="segmented")
    result = parallel_reduction(module, "i", parts=3).module
    for count in (0, 1, 2, 10):
        terms, total = np.arange(count, dtype=np.float32), np.full(1, 7.0, np.float32)
        run(verify(result), {"a": terms, "y": total, "n": count})
        assert total[0] == 7 + terms.sum()


REFUSED = [
    ("parallel_reduction.form", {"form": "shared"}),
    ("parallel_reduction.parts", {"parts": 1}),
    ("parallel_reduction.not_proved", {"form": "segmented"}),
]


@pytest.mark.parametrize(("code", "arguments"), REFUSED)
def test_what_cannot_be_accumulated_is_refused(code, arguments):
    with pytest.raises(ScheduleError) as caught:
        parallel_reduction(scatter(is_sorted=False), "i", **arguments)
    assert caught.value.code == f"schedule.{code}"


BOUND = COPY.replace("i in T.serial(8)", "i in T.thread_binding(8, thread='blockIdx.x')")


@pytest.mark.parametrize("body", [PARALLEL, BOUND])
def test_parts_in_a_parallel_or_bound_loop_are_refused(program, body):
    with pytest.raises(ScheduleError) as caught:
        parallel_reduction(program(body), "j")
    assert caught.value.code == "schedule.parallel_reduction.nested"


def test_the_end_of_a_split_loop_has_no_element():
    builder = ScheduleBuilder(scatter()).split("i", factors=(None, 3))
    with pytest.raises(ScheduleError, match="Needed: vi < n") as caught:
        builder.parallel_reduction("i_1", form="segmented")
    assert caught.value.code == "schedule.parallel_reduction.not_proved"
    builder.parallel_reduction("i_1", parts=2)
    require_scatter(builder.module, "+", count=7)


def test_an_order_that_does_not_last_is_none(program):
    module = program(
        """
for j in T.serial(9):
    with T.block("change"):
        vj = T.axis.spatial(9, j)
        P[vj] = 0
for i in T.serial(8):
    with T.block("sum"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
""",
        facts="T.assume(monotone(P))",
    )
    with pytest.raises(ScheduleError) as caught:
        parallel_reduction(module, "i", form="segmented")
    assert caught.value.code == "schedule.parallel_reduction.not_proved"


def test_the_order_that_segments_need_is_shown():
    with pytest.raises(ScheduleError, match=r"Needed: T\.int64\(P\[i\]\) never decreases\."):
        parallel_reduction(scatter(is_sorted=False), "i", form="segmented")


@pytest.mark.parametrize("form", FORMS)
def test_more_than_a_reduction_is_refused(form, program):
    module = program("""
for i in T.serial(8):
    with T.block("both"):
        vi = T.axis.reduce(8, i)
        with T.init():
            V[0] = 0.0
        V[0] = V[0] + W[vi]
""")
    with pytest.raises(ScheduleError) as caught:
        parallel_reduction(module, "i", form=form)
    assert caught.value.code == "schedule.parallel_reduction.no_reduction"


def test_an_order_that_wraps_around_is_none(program):
    """The loaded values never decrease, but multiples of them may."""
    module = program(
        """
for i in T.serial(8):
    with T.block("sum"):
        vi = T.axis.reduce(8, i)
        V[P[vi] * 4611686018427387905] = V[P[vi] * 4611686018427387905] + W[vi]
""",
        facts="T.assume(monotone(P))",
    )
    with pytest.raises(ScheduleError) as caught:
        parallel_reduction(module, "i", form="segmented")
    assert caught.value.code == "schedule.parallel_reduction.not_proved"
