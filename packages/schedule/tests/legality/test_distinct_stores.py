"""An index array with distinct values selects a different element in each iteration."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

SCATTER = """
@T.prim_func
def scatter(p: T.handle, q: T.handle, f: T.handle, a: T.handle, y: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n, 4), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    F = T.match_buffer(f, (n,), "float32")
    A = T.match_buffer(a, (n, 4), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(distinct(P))
    T.assume(distinct(Q))
    T.assume(distinct(F))
    MORE
    for i in T.serial(n):
        for k in T.serial(4):
            BODY
"""


def scatter(body: str, more: str = "T.assume(in_range(P, 0, m))"):
    return parse_module(SCATTER.replace("BODY", body).replace("MORE", more))


def kinds(module):
    """The kind of each loop, by its variable."""
    return {loop.var: loop.kind for loop in collect(For, module)}


PROVED = {
    "a place": "Y[T.int64(P[i, k])] = A[i, k]",
    "a place is read, too": "Y[T.int64(P[i, k])] = Y[T.int64(P[i, k])] * 2.0 + A[i, k]",
    "a place of a place": "Y[T.int64(Q[T.int64(P[i, k])])] = A[i, k]",
}
NOT_PROVED = {
    "half of a value": "Y[T.int64(P[i, k]) // 2] = A[i, k]",
    "one place for two iterations": "Y[T.int64(P[i // 2, k // 2])] = A[i, k]",
    "a place for all": "Y[T.int64(P[0, 0])] = A[i, k]",
    "two places": "Y[T.int64(P[i, k])] = Y[T.int64(P[k, 0])] + A[i, k]",
    "a value and the one after it": "Y[T.int64(P[i, k])] = Y[T.int64(P[i, k]) + 1]",
    "places of two arrays": "Y[T.int64(P[i, k])] = Y[T.int64(Q[i])]",
    "a number without its fraction": "Y[T.int64(F[i * 4 + k])] = A[i, k]",
    "a few bits of a value": "Y[T.int64(T.int8(P[i, k]))] = A[i, k]",
    "the sum of two": "Y[T.int64(Q[i]) + T.int64(Q[k])] = A[i, k]",
    "a place where it may be": "Y[T.int64(T.load(Q, i * 4 + k, predicate=k > 0, passthrough=0))] = A[i, k]",
}


@pytest.mark.parametrize("name", PROVED)
@pytest.mark.parametrize("loop", ["i", "k"])
def test_proved(name, loop):
    builder = ScheduleBuilder(scatter(PROVED[name]))
    assert kinds(builder.parallel(loop).module)[loop] == "parallel"
    builder = ScheduleBuilder(scatter(PROVED[name])).split("i", factors=(None, 3))
    assert kinds(builder.parallel("i_0").module)["i_0"] == "parallel"


@pytest.mark.parametrize("name", PROVED)
def test_lanes_are_scattered(name):
    module = ScheduleBuilder(scatter(PROVED[name])).vectorize("k").module
    (function,) = verify(module).functions
    assert function.body[0].body[0].kind == "vectorized"


@pytest.mark.parametrize("name", NOT_PROVED)
@pytest.mark.parametrize(("op", "loop"), [("parallel", "i"), ("parallel", "k"), ("vectorize", "k")])
def test_not_proved(name, op, loop):
    with pytest.raises(ScheduleError) as caught:
        getattr(ScheduleBuilder(scatter(NOT_PROVED[name])), op)(loop)
    assert caught.value.code in (f"schedule.{op}.not_proved", f"schedule.{op}.race")


def test_unused_slots_hold_one_value_many_times():
    module = scatter(PROVED["a place"], "T.assume(padded_slots(P, m))")
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(module).parallel("i")
    assert caught.value.code == "schedule.parallel.not_proved"


PADDED_ROWS = """
@T.prim_func
def scatter(c: T.handle, a: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, 4), c, padded=PADDED)
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, J), "int32")
    Y = T.match_buffer(y, (n + 1,), "float32")
    T.assume(FACT)
    for i in T.serial(m):
        for j in T.serial(4):
            Y[T.int64(C[i, j])] = A[i, j]
"""


@pytest.mark.parametrize(
    ("fact", "loop"),
    [("distinct(C)", "i"), ("distinct(C)", "j"), ("sorted_segments(C, unique=True)", "j")],
)
def test_unused_slots_of_an_axis_hold_one_value_many_times(fact, loop):
    """All of them store to `Y[n]`; the check at the call excludes them."""
    text = PADDED_ROWS.replace("FACT", fact)
    ScheduleBuilder(parse_module(text.replace("PADDED", "False"))).parallel(loop)
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(parse_module(text.replace("PADDED", "True"))).parallel(loop)
    assert caught.value.code == "schedule.parallel.not_proved"


def test_one_dimension_alone_tells_a_row():
    """Rows differ in the first index for every second index; places of one row do not."""
    body = "Y[T.int64(P[i, T.int64(Q[k])])] = A[i, k]"
    ScheduleBuilder(scatter(body)).parallel("i")
    ScheduleBuilder(scatter(body)).parallel("k")
    with pytest.raises(ScheduleError):
        ScheduleBuilder(scatter("Y[T.int64(P[i, T.int64(A[0, 0])])] = A[i, k]")).parallel("k")


TWICE = """
@T.prim_func
def twice(p: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    Q = T.match_buffer(p, (n,), "int32")
    Y = T.match_buffer(y, (n,), "float32")
    T.assume(distinct(P))
    for i in T.serial(n):
        Q[i] = 0
    for j in T.serial(n):
        Y[T.int64(P[j])] = 1.0
"""


def test_an_array_that_is_written_under_another_name_is_not_relied_on():
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(parse_module(TWICE)).parallel("j")
    assert caught.value.code == "schedule.parallel.not_proved"


def test_results_are_those_of_the_program():
    module = scatter(PROVED["a place is read, too"])
    builder = ScheduleBuilder(module).vectorize("k").parallel("i")
    random = np.random.default_rng(3)
    before = {
        "p": random.permutation(40).reshape(10, 4).astype(np.int32),
        "q": random.permutation(10).astype(np.int32), "f": np.arange(10, dtype=np.float32),
        "a": random.integers(-3, 4, (10, 4)).astype(np.float32),
        "y": random.integers(-3, 4, 40).astype(np.float32), "n": 10, "m": 40,
    }  # fmt: skip
    after = before | {"y": before["y"].copy()}
    run(verify(builder.module), after, chunks=3)
    expected = before["y"] * 2
    expected[before["p"].ravel()] += before["a"].ravel()
    np.testing.assert_array_equal(after["y"], expected)
