"""`horizontal_fuse`: concurrent loops of independent iterations become one."""

from __future__ import annotations

import numpy as np
import pytest
from refused import reason_of

from gossamer_ir.interpret import run
from gossamer_ir.nodes import For, If
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, horizontal_fuse, replay

FACTS = """
    T.assume(in_range(P, 0, n))
    T.assume(sorted_segments(P, unique=True))
    T.assume(in_range(Q, 0, n))
    T.assume(sorted_segments(Q, unique=True))
    T.assume(disjoint(P, Q))
"""
FIRST = """
    for i in T.parallel(s, weight=3 * i, grain=8):
        Y[T.int64(P[0, i])] = 2.0 * X[i]
"""
SECOND = """
    for j in T.parallel(t, weight=5 * j, grain=16):
        for u in T.serial(2):
            Y[T.int64(Q[0, j])] = Y[T.int64(Q[0, j])] + 1.0
"""


def program(body=FIRST + SECOND, facts=FACTS):
    return parse_module(f"""
@T.prim_func
def f(x: T.handle, y: T.handle, z: T.handle, p: T.handle, q: T.handle,
      n: T.int64, s: T.int64, t: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    Z = T.match_buffer(z, (n,), "float32")
    P = T.match_buffer(p, (1, s), "int32")
    Q = T.match_buffer(q, (1, t), "int32")
{facts}{body}""")


def outcome(module, p=(0, 3, 4), q=(1, 5)):
    arrays = {name: np.arange(9, dtype=np.float32) + number for number, name in enumerate("xyz")}
    sizes = {"n": 9, "s": len(p), "t": len(q)}
    arguments = {"p": np.array([p], np.int32), "q": np.array([q], np.int32), **arrays, **sizes}
    run(verify(module), arguments, chunks=3)
    return [array.tolist() for array in arrays.values()]


def fused_loop_of(module):
    (loop,) = (stmt for stmt in module.functions[0].body if isinstance(stmt, For))
    return loop


@pytest.mark.parametrize(("p", "q"), [((0, 3, 4), (1, 5)), ((), (1, 5)), ((2,), ()), ((), ())])
def test_loops_over_disjoint_rows_are_joined(p, q):
    module = program()
    result = horizontal_fuse(module, "i", "j")
    assert outcome(result.module, p, q) == outcome(module, p, q)
    assert result.names == ("i_fused",)
    assert result.forwards == {"i": ("i_fused",), "j": ("i_fused",)}
    loop = fused_loop_of(result.module)
    assert loop.kind == "parallel"
    text = print_module(result.module)
    assert (
        "T.parallel(s + t, weight=3 * T.min(i_fused, s) + 5 * T.max(i_fused - s, 0), grain=16)"
        in text
    )
    assert parse_module(text) == result.module
    assert replay(module, (result.step,)) == result.module
    assert ScheduleBuilder(module).horizontal_fuse("i", "j").trace == (result.step,)


THIRD = """
    for k in T.parallel(n):
        Z[k] = X[k]
"""


def test_three_loops_and_loops_that_run_once():
    nested = (
        SECOND.replace("\n    ", "\n        ")
        .replace("\n        for j", "\n    for o in T.serial(1):\n        for j", 1)
        .replace("Q[0, j]", "Q[o, j]")
    )
    module = program(FIRST + nested + THIRD)
    result = horizontal_fuse(module, "i", "j", "k")
    assert outcome(result.module) == outcome(module)
    text = print_module(result.module)
    assert "for o" not in text
    assert "T.min(T.max(i_fused - s, 0), t)" in text
    assert "+ T.max(i_fused - (s + t), 0)" in text


def test_an_extent_may_depend_on_a_loop_that_runs_once():
    nested = """
    for o in T.serial(1):
        for l in T.parallel(T.int64(P[o, 0]) + o, weight=T.int64(P[o, 0]) + l):
            Z[l] = X[l]
"""
    module = program(FIRST + nested)
    result = horizontal_fuse(module, "i", "l")
    assert "T.parallel(s + T.int64(P[0, 0])" in print_module(result.module)
    for p in ((0, 3, 4), (5,)):
        assert outcome(result.module, p) == outcome(module, p)


CONDITIONAL = """
    if s > 1:
        for o in T.serial(1):
            if T.int64(P[o, 0]) > 2:
                for k in T.parallel(n, weight=2 * k):
                    Z[k] = 2.0 * X[k]
"""


@pytest.mark.parametrize("p", [(0, 3, 4), (3, 4), (4,), ()])
def test_conditions_around_loops_are_moved_into_the_fused_loop(p):
    first = "    if n > 5:\n" + FIRST.replace("\n    ", "\n        ").lstrip("\n")
    module = program(first + CONDITIONAL)
    result = horizontal_fuse(module, "i", "k")
    assert outcome(result.module, p) == outcome(module, p)
    text = print_module(result.module)
    assert "T.parallel(s + n, weight=T.if_then_else(n > 5, 3 * T.min(i_fused, s), 0) + " in text
    assert "T.if_then_else(T.int64(P[0, 0]) > 2, 2 * T.max(i_fused - s, 0), 0)" in text
    fused = fused_loop_of(result.module)
    assert result.module.functions[0].body == (fused,)
    # Each condition is that of the iterations of its loop only, in the order in which they were.
    (branch,) = fused.body
    (outer,) = branch.else_body
    assert [type(inner) for inner in (*branch.then_body, *outer.then_body)] == [If, If]


@pytest.mark.parametrize(
    "extent", ["T.int64(P[0, t])", "T.max(T.int64(P[0, 3]), 0)", "n // t", "T.max(n % t, 0)"]
)
def test_an_extent_that_a_condition_makes_defined_is_refused(extent):
    body = f"""
    if t > 9:
        for k in T.parallel({extent}):
            Z[k % n] = 1.0
"""
    assert reason_of(horizontal_fuse, program(FIRST + body), "i", "k") == (
        "horizontal_fuse.not_proved"
    )


@pytest.mark.parametrize("condition", ["", "if v > 1:"])
def test_loops_that_run_once_may_start_at_the_variable_of_one_around_them(condition):
    inner = "    " if condition else ""
    module = program(
        f"""
    for i in T.parallel(n):
        Y[i] = X[i]
    for u in T.serial(s, s + 1):
        for v in T.serial(u, u + 1):
            {condition or "for k in T.parallel(n):"}
                {"for k in T.parallel(n):" if condition else "Z[k] = X[k] + T.float32(v)"}
                {inner}{"Z[k] = X[k] + T.float32(v)" if condition else ""}
"""
    )
    fused = horizontal_fuse(module, "i", "k").module
    assert outcome(fused) == outcome(module)


def test_a_loop_has_no_weight_where_its_condition_does_not_hold():
    """Its weight would decrease then, as it does here."""
    module = program("""
    for i in T.parallel(n, weight=i * 1000):
        Y[i] = X[i]
    if t > 9:
        for k in T.parallel(n, weight=k * 1000 * (t - 9)):
            Z[k] = 1.0
""")
    fused = horizontal_fuse(module, "i", "k").module
    assert outcome(fused, q=()) == outcome(module, q=())


def test_a_condition_that_another_loop_changes_is_refused():
    body = """
    for k in T.parallel(n):
        Z[k] = X[k]
    if X[0] > 1.0:
        for l in T.parallel(n):
            Y[l] = 2.0
"""
    assert "if X[0] > 1.0" in print_module(horizontal_fuse(program(body), "k", "l").module)
    changing = program(body.replace("X[0] > 1.0", "Z[0] > 1.0"))
    assert reason_of(horizontal_fuse, changing, "k", "l") == "horizontal_fuse.not_proved"


def test_loops_without_weights_and_grains_have_none():
    module = program(THIRD + THIRD.replace("k", "l").replace("Z", "Y"))
    loop = fused_loop_of(horizontal_fuse(module, "k", "l").module)
    assert (loop.weight, loop.grain) == (None, None)


def test_atomic_updates_of_both_loops_are_kept_apart_by_nothing():
    atomic = """
    for i in T.parallel(s, annotations={"atomic": "Y"}):
        Y[i % 3] = Y[i % 3] + X[i]
    for j in T.parallel(t, annotations={"atomic": "Y"}):
        Y[j % 2] = Y[j % 2] + X[j]
"""
    module = program(atomic)
    result = horizontal_fuse(module, "i", "j")
    assert fused_loop_of(result.module).annotations == (("atomic", "Y"),)
    assert outcome(result.module) == outcome(module)
    plain = program(atomic.replace('(t, annotations={"atomic": "Y"})', "(1)"))
    assert reason_of(horizontal_fuse, plain, "i", "j") == "horizontal_fuse.not_proved"


BLOCKS = """
    for i in T.thread_binding(s, thread="blockIdx.x"):
        for a in T.thread_binding(2, thread="threadIdx.x"):
            if a < 1:
                Y[T.int64(P[0, i])] = 2.0 * X[i]
    for j in T.thread_binding((t + 1) // 2, thread="blockIdx.x", annotations={"atomic": "Y"}):
        for b in T.thread_binding(2, thread="threadIdx.x", annotations={"atomic": "Y"}):
            if j * 2 + b < t:
                Y[T.int64(Q[0, j * 2 + b])] = Y[T.int64(Q[0, j * 2 + b])] + 1.0
"""


@pytest.mark.parametrize(("p", "q"), [((0, 3, 4), (1, 5, 6)), ((), (1, 5)), ((), ())])
def test_blocks_of_threads_are_divided_among_loops(p, q):
    module = program(BLOCKS)
    result = horizontal_fuse(module, "i", "j")
    assert outcome(result.module, p, q) == outcome(module, p, q)
    loop = fused_loop_of(result.module)
    # Only the loop over threads says that updates are atomic: plain ones stay plain.
    assert (loop.kind, loop.thread, loop.annotations) == ("thread_binding", "blockIdx.x", ())
    text = print_module(result.module)
    assert 'i_fused in T.thread_binding(s + (t + 1) // 2, thread="blockIdx.x")' in text
    assert 'b in T.thread_binding(2, thread="threadIdx.x", annotations={"atomic": "Y"})' in text


def test_an_update_that_no_inner_loop_makes_atomic_is_not_mixed_with_plain_ones():
    module = program(
        BLOCKS.replace(
            ', thread="threadIdx.x", annotations={"atomic": "Y"}', ', thread="threadIdx.x"'
        )
    )
    assert reason_of(horizontal_fuse, module, "i", "j") == "horizontal_fuse.not_proved"


INIT = """
    for j in T.parallel(t):
        for u in T.serial(4):
            with T.block("sums"):
                vj, vu = T.axis.remap("RR", [j, u])
                with T.init():
                    Z[0] = 0.0
                Z[0] = Z[0] + X[vj]
"""
ONE = """
    for {0} in T.parallel(1):
        Z[0] = 1.0
"""
INSIDE = """
    for o in T.serial({0}):{1}
        for k in T.parallel(n):
            Z[k] = 1.0
"""
EXTENT = """
    for k in T.parallel(1):
        P[0, k] = 1
    for l in T.parallel(T.max(T.int64(P[0, 0]), 0)):
        Z[l] = 1.0
"""
LATER = THIRD.replace("k", "l").replace("parallel(n)", "parallel(1, n)")
SERIAL = SECOND.replace("parallel(t, weight=5 * j, grain=16)", "serial(t)")
MARKED = THIRD.replace("(n)", '(n, annotations={"mark": 1})')
OTHER_SEGMENT = SECOND.replace("Q[0, j]", "Q[T.int64(Q[0, 0]) % 1, j]")
REFUSED = {
    "one loop": ("horizontal_fuse.loops", FIRST, ("i",)),
    "a loop twice": ("horizontal_fuse.loops", FIRST + SECOND, ("i", "i")),
    "a serial loop": ("horizontal_fuse.kind", FIRST + SERIAL, ("i", "j")),
    "blocks beside a parallel loop": (
        "horizontal_fuse.kind", BLOCKS[: BLOCKS.index("    for j")] + THIRD, ("i", "k"),
    ),
    "threads": (
        "horizontal_fuse.kind",
        THIRD.replace("parallel(n)", 'thread_binding(4, thread="threadIdx.x")') + FIRST, ("k", "i"),
    ),
    "other axes": (
        "horizontal_fuse.kind", BLOCKS.replace("blockIdx.x", "blockIdx.y", 1), ("i", "j"),
    ),
    "other numbers of threads": (
        "horizontal_fuse.extent", BLOCKS.replace("a in T.thread_binding(2", "a in T.thread_binding(4"),
        ("i", "j"),
    ),
    "a start": ("horizontal_fuse.start", THIRD + LATER, ("k", "l")),
    "another order": ("horizontal_fuse.not_adjacent", FIRST + THIRD, ("k", "i")),
    "a statement between": (
        "horizontal_fuse.not_adjacent", FIRST + "    Z[0] = 1.0\n" + SECOND, ("i", "j"),
    ),
    "a statement beside": (
        "horizontal_fuse.not_adjacent",
        FIRST + INSIDE.format(1, "\n        Z[0] = 1.0"),
        ("i", "k"),
    ),
    "a condition with another side": (
        "horizontal_fuse.not_adjacent",
        FIRST + "    if n > 5:\n        for k in T.parallel(n):\n            Z[k] = 1.0\n"
        "    else:\n        Z[0] = 1.0\n",
        ("i", "k"),
    ),
    "a loop around": ("horizontal_fuse.not_adjacent", FIRST + INSIDE.format(2, ""), ("i", "k")),
    "an annotation": ("horizontal_fuse.annotations", FIRST + MARKED, ("i", "k")),
    "an init": ("horizontal_fuse.init", THIRD.replace("Z", "Y") + INIT, ("k", "j")),
    "one element": ("horizontal_fuse.race", ONE.format("k") + ONE.format("l"), ("k", "l")),
    "another segment": ("horizontal_fuse.not_proved", FIRST + OTHER_SEGMENT, ("i", "j")),
    "elements of one array": (
        "horizontal_fuse.not_proved", FIRST + THIRD.replace("Z[k]", "Y[k]"), ("i", "k"),
    ),
    "a read of what the other writes": (
        "horizontal_fuse.not_proved", FIRST + THIRD.replace("X[k]", "Y[k]"), ("i", "k"),
    ),
    "a negative extent": (
        "horizontal_fuse.not_proved", FIRST + THIRD.replace("(n)", "(n - 9)"), ("i", "k"),
    ),
    "an extent that changes": ("horizontal_fuse.not_proved", EXTENT, ("k", "l")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_loops_that_depend_on_each_other_are_refused(name):
    reason, body, loops = REFUSED[name]
    facts = "" if name == "an extent that changes" else FACTS
    assert reason_of(horizontal_fuse, program(body, facts), *loops) == reason


def test_only_arrays_that_are_declared_disjoint_select_different_elements():
    for facts in (
        FACTS.replace("    T.assume(disjoint(P, Q))\n", ""),
        FACTS.replace("disjoint", "subset"),
    ):
        assert reason_of(horizontal_fuse, program(facts=facts), "i", "j") == (
            "horizontal_fuse.not_proved"
        )


def test_extents_whose_sum_may_overflow_are_refused():
    module = parse_module("""
@T.prim_func
def f(x: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (4,), "float32")
    Y = T.match_buffer(y, (4,), "float32")
    for i in T.parallel(9223372036854775807):
        if i < 1:
            Y[i] = 1.0
    for j in T.parallel(2):
        X[j] = X[j]
""")
    assert reason_of(horizontal_fuse, module, "i", "j") == "horizontal_fuse.not_proved"
