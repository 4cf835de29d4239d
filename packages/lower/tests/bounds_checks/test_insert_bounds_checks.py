"""Accesses are proved in bounds or get a bounds check, which stops the kernel and names the buffer."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.nodes import Guard
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import insert_bounds_checks, lower_to_flat

HEADER = """
@T.prim_func
def program(x: T.handle, y: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    P = T.match_buffer(p, (m,), "int32")
"""

PROVED = {
    "a loop over the buffer": "    for i in T.serial(m):\n        Y[i] = 1.0\n",
    "a condition": "    for i in T.serial(m):\n        if i + 1 < m:\n            Y[i + 1] = 1.0\n",
    "the condition of an else branch": (
        "    for i in T.serial(m):\n        if i + 1 >= m:\n            Y[i] = 0.0\n"
        "        else:\n            Y[i + 1] = 1.0\n"
    ),
    "the condition of a while loop": (
        "    if m > 0:\n        while P[0] < T.int32(3) and m > 4:\n"
        "            P[0] = P[0] + T.int32(1)\n            Y[4] = 1.0\n"
    ),
    "an upper and a lower condition": (
        "    for i in T.serial(m):\n        if i >= 2:\n            Y[i - 2] = 1.0\n"
    ),
    "a split loop": (
        "    for i in T.serial((m + 3) // 4):\n        for l in T.serial(4):\n"
        "            if i * 4 + l < m:\n                Y[i * 4 + l] = 1.0\n"
    ),
    "a let": "    for i in T.serial(m):\n        at = m - 1 - i\n        Y[at] = 1.0\n",
    "a remainder": "    for i in T.serial(m):\n        if 4 <= m:\n            Y[i % 4] = 1.0\n",
    "a condition on what is written elsewhere": (
        "    for i in T.serial(m):\n        P[i] = T.int32(7)\n"
        "    for i in T.serial(m):\n        if 0 <= T.int64(P[i]) and T.int64(P[i]) < n:\n"
        "            Y[i] = X[T.int64(P[i])]\n"
    ),
    "a condition on some bits of what is written": (
        "    for i in T.serial(m):\n        P[i] = T.int32(7)\n"
        "        if i * 4 + T.int64(P[i] >> 2 & 3) < n:\n"
        "            Y[i] = X[i * 4 + T.int64(P[i] >> 2 & 3)]\n"
    ),
    "a vector": (
        "    for i in T.serial(m // 4):\n        Y[T.ramp(i * 4, 1, 4)] = T.broadcast(1.0, 4)\n"
    ),
    "a masked vector": (
        "    for i in T.serial(m):\n        T.store(Y, T.ramp(i * 4, 1, 4), "
        "value=T.broadcast(1.0, 4), predicate=T.ramp(i * 4, 1, 4) < T.broadcast(m, 4))\n"
    ),
    "a vector backwards": (
        "    for i in T.serial(3, m):\n        Y[T.ramp(i, -1, 4)] = T.broadcast(1.0, 4)\n"
    ),
    "gathered by a fact": (
        "    T.assume(in_range(P, 0, n))\n    for i in T.serial(m // 4):\n"
        '        Y[i] = T.lane_reduce("add", X[T.cast(P[T.ramp(i * 4, 1, 4)], "int64x4")])\n'
    ),
    "a mask on places that are kept in a vector": (
        "    for i in T.serial(m):\n"
        '        at: T.int64x4 = T.cast(T.broadcast(P[i], 4), "int64x4")\n'
        '        Y[i] = T.lane_reduce("add", T.load(X, at, '
        "predicate=at >= T.broadcast(0, 4) and at < T.broadcast(n, 4), "
        "passthrough=T.broadcast(T.float32(0), 4)))\n"
    ),
    "a fact": (
        "    T.assume(in_range(P, 0, n))\n"
        "    for i in T.serial(m):\n        Y[i] = X[T.int64(P[i])]\n"
    ),
}
UNPROVED = {
    "one too far": ("    for i in T.serial(m):\n        Y[i + 1] = 1.0\n", "Y"),
    "below zero": ("    for i in T.serial(m):\n        Y[i - 1] = 1.0\n", "Y"),
    "another size": ("    for i in T.serial(n):\n        Y[i] = 1.0\n", "Y"),
    "an index that nothing is known of": (
        "    for i in T.serial(m):\n        Y[i] = X[T.int64(P[i])]\n",
        "X",
    ),
    "a vector at the end": (
        "    for i in T.serial(m):\n        Y[T.ramp(i, 1, 4)] = T.broadcast(1.0, 4)\n",
        "Y",
    ),
    "a vector of vscale lanes": (
        "    for i in T.serial(m):\n"
        "        Y[T.ramp(i, 1, T.vscale() * 4)] = T.broadcast(1.0, T.vscale() * 4)\n",
        "Y",
    ),
    "a vector with a mask that is true for too many lanes": (
        "    for i in T.serial(m):\n        T.store(Y, T.ramp(i * 4, 1, 4), "
        "value=T.broadcast(1.0, 4), predicate=T.ramp(i * 4, 1, 4) <= T.broadcast(m, 4))\n",
        "Y",
    ),
    "gathered without a fact": (
        "    for i in T.serial(m):\n"
        '        Y[i] = T.lane_reduce("add", X[T.cast(T.broadcast(P[i], 4), "int64x4")])\n',
        "X",
    ),
    "places that are kept in a vector": (
        "    for i in T.serial(m):\n"
        '        at: T.int64x4 = T.cast(T.broadcast(P[i], 4), "int64x4")\n'
        '        Y[i] = T.lane_reduce("add", X[at])\n',
        "X",
    ),
    "places that are reduced together": (
        "    for i in T.serial(m):\n"
        '        Y[i] = T.lane_reduce("add", X[T.transpose_reduce("max", '
        'T.cast(T.broadcast(P[i], 2), "int64x2"), T.ramp(0, 1, 2))])\n',
        "X",
    ),
    "a fact about a buffer that is written": (
        "    T.assume(in_range(P, 0, n))\n    for i in T.serial(m):\n"
        "        P[i] = T.int32(7)\n        Y[i] = X[T.int64(P[i])]\n",
        "X",
    ),
    "a condition on a buffer that is written": (
        "    for i in T.serial(m):\n        if T.int64(P[i]) < n + 3:\n"
        "            if T.int64(P[i]) >= 3:\n                P[i] = T.int32(9)\n"
        "                Y[i] = X[T.int64(P[i]) - 3]\n",
        "X",
    ),
    "a condition on what the body writes last": (
        "    for i in T.serial(m):\n        if 3 <= T.int64(P[i]) and T.int64(P[i]) - 3 < n:\n"
        "            for k in T.serial(m):\n                Y[i] = X[T.int64(P[i]) - 3]\n"
        "                P[i] = T.int32(9)\n",
        "X",
    ),
    "a fact that is too wide": (
        "    T.assume(in_range(P, 0, n + 1))\n"
        "    for i in T.serial(m):\n        Y[i] = X[T.int64(P[i])]\n",
        "X",
    ),
}


def guarded(text):
    return insert_bounds_checks(parse_module(HEADER + text))


@pytest.mark.parametrize("name", PROVED)
def test_accesses_proved_in_bounds_have_no_guard(name):
    assert not any(isinstance(node, Guard) for node in walk(guarded(PROVED[name])))


@pytest.mark.parametrize("name", UNPROVED)
def test_accesses_not_proved_in_bounds_are_guarded(name):
    text, buffer = UNPROVED[name]
    guards = [node.buffer for node in walk(guarded(text)) if isinstance(node, Guard)]
    assert guards == [buffer]


@pytest.mark.parametrize("name", UNPROVED)
def test_a_guard_stops_before_the_access(name):
    text, buffer = UNPROVED[name]
    arguments = {
        "x": np.zeros(3, np.float32),
        "y": np.zeros(2, np.float32),
        "p": np.full(2, 3, np.int32),
        "m": 2,
        "n": 3,
    }
    with pytest.raises(GuardFailed, match=buffer):
        run(lower_to_flat(parse_module(HEADER + text)), arguments)


def test_a_condition_on_what_others_write_at_the_same_time_is_not_relied_on():
    text = (
        "    for i in T.parallel(m):\n        P[i] = T.int32(9)\n"
        "        if 0 <= T.int64(P[0]) and T.int64(P[0]) < n:\n"
        "            Y[i] = X[T.int64(P[0])]\n"
    )
    for loop, expected in (("T.parallel", ["X"]), ("T.serial", [])):
        nodes = walk(guarded(text.replace("T.parallel", loop)))
        assert [
            node.buffer for node in nodes if isinstance(node, Guard) if node.buffer == "X"
        ] == expected


def test_only_the_side_that_is_evaluated_is_guarded():
    text = (
        "    for i in T.serial(m):\n"
        "        Y[i] = T.if_then_else(i < 1, X[T.int64(P[i])], T.float32(0))\n"
    )
    module = lower_to_flat(parse_module(HEADER + text))
    y = np.full(3, np.nan, np.float32)
    run(
        module,
        {"x": np.ones(1, np.float32), "y": y, "p": np.array([0, 9, 9], np.int32), "m": 3, "n": 1},
    )
    np.testing.assert_array_equal(y, [1, 0, 0])


@pytest.mark.parametrize("stop_row", [0, 2, None])
def test_the_condition_of_a_while_loop_is_guarded_whenever_it_is_evaluated(stop_row):
    text = "    while X[T.int64(P[0])] < 1.0:\n        P[0] = P[0] + T.int32(1)\n"
    x, p = np.zeros(3, np.float32), np.zeros(2, np.int32)
    arguments = {"x": x, "y": np.zeros(2, np.float32), "p": p, "m": 2, "n": 3}
    module = lower_to_flat(parse_module(HEADER + text))
    if stop_row is None:
        with pytest.raises(GuardFailed, match="X"):
            run(module, arguments)
        return
    x[stop_row] = 1
    run(module, arguments)
    assert p[0] == stop_row


@pytest.mark.parametrize("loop", ["m, weight=T.int64(P[i]) + i", "n, n + 2, weight=T.int64(P[i])"])
def test_a_weight_that_would_need_a_guard_is_refused(loop):
    text = f"    for i in T.parallel({loop}):\n        Y[i] = 1.0\n"
    with pytest.raises(UnsupportedError) as caught:
        guarded(text)
    assert caught.value.code == "lower.insert_bounds_checks.unproved_weight"


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_constant_that_is_also_the_extent_of_a_buffer_is_no_larger_for_that(rows):
    """Groups of four, and an array of four offsets."""
    module = parse_module(f"""
@T.prim_func
def f(y: T.handle, p: T.handle, nnz: T.int64) -> None:
    T.stage("loop")
    P = T.match_buffer(p, ({rows + 1},), "int64")
    Y = T.match_buffer(y, (nnz,), "float32")
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(monotone(P))
    for i in T.serial({rows}):
        for j in T.serial((P[i + 1] - P[i] + 3) // 4):
            for u in T.serial(4):
                if j * 4 + u < P[i + 1] - P[i]:
                    Y[P[i] + (j * 4 + u)] = 1.0
""")
    assert not any(isinstance(node, Guard) for node in walk(insert_bounds_checks(module)))


def guards_of(value):
    text = f"    for i in T.serial(m):\n        Y[i] = {value}\n"
    return [node for node in walk(guarded(text)) if isinstance(node, Guard)]


def test_an_access_that_a_statement_repeats_is_guarded_once():
    """An index in the index of another, in its condition and in its value: the number of guards grows
    linearly with the depth."""
    place, sizes = "i", []
    for _ in range(6):
        place = f"T.int64(P[T.if_then_else(T.int64(P[{place}]) > 0, {place}, 0)])"
        guards = guards_of(f"X[{place}]")
        assert len(set(guards)) == len(guards)
        sizes.append(len(guards))
    assert sizes == [1, 3, 5, 7, 9, 11]


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("X[T.int64(P[i])] + X[T.int64(P[i])]", 1),
        ("X[T.int64(P[i])] + T.if_then_else(n > 4, X[T.int64(P[i])], T.float32(0))", 1),
        ("T.if_then_else(n > 4, X[T.int64(P[i])] + X[T.int64(P[i])], T.float32(0))", 1),
        (
            "T.if_then_else(n > 4, X[T.int64(P[i])] + T.if_then_else(m > 4, X[T.int64(P[i])], "
            "T.float32(0)), T.float32(0))",
            1,
        ),
        ("T.if_then_else(n > 4, X[T.int64(P[i])], T.float32(0)) + X[T.int64(P[i])]", 2),
        ("T.if_then_else(n > 4, X[T.int64(P[i])], X[T.int64(P[i])] + T.float32(1))", 2),
        (
            "T.if_then_else(n > 4, T.if_then_else(m > 4, X[T.int64(P[i])], T.float32(0)) "
            "+ X[T.int64(P[i])], T.float32(0))",
            2,
        ),
    ],
)
def test_a_guard_is_left_out_only_where_another_says_the_same(value, count):
    assert len(guards_of(value)) == count
    text = f"    for i in T.serial(m):\n        Y[i] = {value}\n"
    for n, outside in ((3, False), (6, False), (3, True), (6, True)):
        places = np.full(2, n if outside else n - 1, np.int32)
        arguments = {"x": np.ones(n, np.float32), "y": np.zeros(2, np.float32), "p": places}
        runs = [parse_module(HEADER + text), lower_to_flat(parse_module(HEADER + text))]
        stopped = []
        for module in runs:
            try:
                run(module, arguments | {"m": 2, "n": n})
                stopped.append(False)
            except (GuardFailed, InterpreterError):
                stopped.append(True)
        assert stopped[0] == stopped[1], (value, n, outside)
