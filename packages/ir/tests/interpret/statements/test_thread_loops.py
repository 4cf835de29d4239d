"""Threads of a grid wait at barriers. Races and reads of what nothing wrote are errors that name a
statement."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.script import parse_module

HEAD = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    Y = T.match_buffer(y, (n,), "float64")
"""
BLOCKS = (
    'for b in T.thread_binding((n + 7) // 8, thread="blockIdx.x"):',
    '    S = T.alloc_buffer((8,), "float64", scope="shared")',
    '    for t in T.thread_binding(8, thread="threadIdx.x"):',
)
NESTED = (
    'S = T.alloc_buffer((3, 5), "float64", scope="shared")',
    'for u in T.thread_binding(3, thread="threadIdx.y"):',
    '    for t in T.thread_binding(5, thread="threadIdx.x"):',
)


def flat(*lines):
    return parse_module(HEAD + "".join(f"    {line}\n" for line in lines))


def threads(head, *lines):
    return flat(*head, *(f"        {line}" for line in lines))


def called(module, n=15):
    x, y = np.arange(n, dtype=np.float64), np.zeros(n)
    run(module, {"x": x, "y": y, "n": n})
    return y


def test_a_thread_reads_after_a_barrier_what_others_wrote():
    body = (
        "if b * 8 + t < n:",
        "    S[t] = X[b * 8 + t]",
        "else:",
        "    S[t] = -1.0",
        "T.barrier()",
        "if b * 8 + t < n:",
        "    Y[b * 8 + t] = S[7 - t]",
    )
    result = called(threads(BLOCKS, *body))
    np.testing.assert_array_equal(result, [7, 6, 5, 4, 3, 2, 1, 0, -1, 14, 13, 12, 11, 10, 9])


def test_barriers_in_loops_order_each_iteration():
    body = (
        "S[u, t] = X[u * 5 + t]",
        "T.barrier()",
        "for s in T.serial(4):",
        "    a: T.float64 = S[(u + 1) % 3, (t + 1) % 5]",
        "    T.barrier()",
        "    S[u, t] = a",
        "    T.barrier()",
        "Y[u * 5 + t] = S[u, t]",
    )
    grid = np.arange(15.0).reshape(3, 5)
    expected = np.roll(grid, (-4, -4), (0, 1)).ravel()
    np.testing.assert_array_equal(called(threads(NESTED, *body)), expected)


def test_a_thread_keeps_its_variables_and_its_local_memory_over_a_barrier():
    body = (
        'L = T.alloc_buffer((1,), "float64", scope="local")',
        "L[0] = X[u * 5 + t]",
        "a: T.float64 = L[0]",
        "k: T.int64 = u",
        "T.barrier()",
        "if k == u:",
        "    T.barrier()",
        "    Y[u * 5 + t] = L[0] + a",
    )
    np.testing.assert_array_equal(called(threads(NESTED, *body)), 2 * np.arange(15.0))


def test_a_barrier_outside_of_loops_over_threads_has_no_effect():
    lines = ("T.barrier()", "for i in T.serial(n):", "    T.barrier()", "    Y[i] = X[i]")
    np.testing.assert_array_equal(called(flat(*lines)), np.arange(15.0))


def test_sums_over_the_threads_of_a_block_and_atomic_sums_are_no_races():
    body = ("if b * 8 + t < n:", "    T.atomic_add(Y[0], X[b * 8 + t])")
    assert called(threads(BLOCKS, *body))[0] == 105
    assert called(threads(NESTED, "Y[1] = Y[1] + X[u * 5 + t]"))[1] == 105


RACES = {
    "a store and a load": (
        BLOCKS,
        ("S[t] = X[t]", "Y[b * 8] = S[7 - t]"),
        "reads S[7], which no thread has written",
    ),
    "a read before the store": (
        BLOCKS,
        ("S[t] = 1.0", "T.barrier()", "a: T.float64 = S[7 - t]", "S[t] = a"),
        "A race: the store to 'S' at t = 3 and the Let of 'a' at t = 4 access S[3] without a",
    ),
    "two stores": (
        NESTED,
        ("Y[t] = X[t]",),
        "A race: the store to 'Y' at u = 0 and the store to 'Y' at u = 1 access Y[0]",
    ),
    "blocks": (
        BLOCKS,
        ("Y[t] = X[t]", "T.barrier()"),
        "the store to 'Y' at b = 0 and the store to 'Y' at b = 1 access Y[0]",
    ),
    "sums of blocks": (
        BLOCKS,
        ("Y[0] = Y[0] + X[t]",),
        "the store to 'Y' at b = 0 and the store to 'Y' at b = 1 access Y[0]",
    ),
    "a plain store beside an atomic sum": (
        BLOCKS,
        ("S[t] = X[t]", "T.atomic_add(Y[0], S[t])", "Y[t + 8 * b] = X[t]"),
        "A race: the store to 'Y' at t = 0 and the store to 'Y' at t = 1 access Y[0]",
    ),
    "sums by different operations": (
        NESTED,
        ("if t < 3:", "    Y[0] = Y[0] + X[t]", "else:", "    Y[0] = T.max(Y[0], X[t])"),
        "at t = 2 and the store to 'Y' at t = 3 access Y[0]",
    ),
    "a barrier of some threads": (
        BLOCKS,
        ("if t < 5:", "    T.barrier()"),
        "The thread at b = 0, t = 0 waits at a barrier that the thread at t = 7 does not reach.",
    ),
    "a barrier of some threads in each iteration": (
        BLOCKS,
        ("for s in T.serial(2):", "    if (s + t) % 2 == 0:", "        T.barrier()"),
        "The thread at b = 0, t = 1 waits at a barrier that the threads of its block do not reach.",
    ),
    "two barriers": (
        BLOCKS,
        ("if t < 5:", "    T.barrier()", "else:", "    T.barrier()", "Y[b * 8 + t] = 1.0"),
        "The thread at b = 0, t = 5 waits at a barrier that the threads of its block do not reach.",
    ),
    "a different number of iterations": (
        BLOCKS,
        ("for s in T.serial(t):", "    T.barrier()"),
        "The thread at b = 0, t = 1 waits at a barrier that the thread at t = 0 does not reach.",
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_what_threads_must_not_do_is_an_error(name):
    head, body, message = RACES[name]
    with pytest.raises(InterpreterError) as caught:
        called(threads(head, *body))
    assert message in str(caught.value)


KERNEL = """
@T.prim_func(entry=True)
def f(y: T.handle) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (32,), "float64")
    T.launch("kernel", [y], threads={"threadIdx.x": 8, "blockIdx.x": 4})

@T.prim_func
def kernel(y: T.handle) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (32,), "float64")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            Y[b * 8 + t] = 1.0
        T.barrier()
        for c in T.thread_binding(4, thread="blockIdx.x"):
            Y[{index}] = 2.0
"""


def test_nothing_orders_the_blocks_of_a_kernel():
    run(parse_module(KERNEL.replace("{index}", "c * 8 + t")), {"y": np.zeros(32)})
    with pytest.raises(
        InterpreterError, match=r"A race: .* at b = 3 and .* at c = 0 access Y\[24\]"
    ):
        run(parse_module(KERNEL.replace("{index}", "(3 - c) * 8 + t")), {"y": np.zeros(32)})


@pytest.mark.parametrize(("index", "is_race"), [("24 + t", True), ("t", True), ("32 + t", False)])
def test_each_block_of_a_kernel_loads_what_stands_outside_of_a_loop_over_blocks(index, is_race):
    text = KERNEL.replace("32,", "64,").replace("{index}", "c * 8 + t")
    load = f"        v: T.float64 = Y[{index}]\n"
    module = parse_module(text.replace("        T.barrier()\n", load))
    if not is_race:
        run(module, {"y": np.zeros(64)})
        return
    with pytest.raises(InterpreterError, match=r"A race: .* the Let of 'v' at b = "):
        run(module, {"y": np.zeros(64)})


def test_a_race_of_lanes_is_found_element_by_element():
    body = ("T.store(Y, T.Ramp(t, 1, 2), value=T.Broadcast(X[t], 2))",)
    with pytest.raises(InterpreterError, match=r"at t = 0 .* at t = 1 access Y\[1\]"):
        called(threads(NESTED, "if u == 0:", *(f"    {line}" for line in body)))


SUMS = (
    "v: T.float64 = X[u * 5 + t]",
    "a: T.float64 = T.shuffle_xor(v, 1, width=2)",
    "b: T.float64 = T.shuffle_down(v, 3, width=8)",
    "Y[u * 5 + t] = T.if_then_else((u * 5 + t) % 8 < 5 and u * 5 + t < 12, a + b, v)",
)


def test_threads_of_a_group_exchange_values_counted_along_all_axes():
    x, number = np.arange(15.0), np.arange(15)
    partner = np.where(number < 14, number ^ 1, 0)
    is_inside = (number % 8 < 5) & (number < 12)
    expected = np.where(is_inside, x[partner] + x[(number + 3) % 15], x)
    np.testing.assert_array_equal(called(threads(NESTED, *SUMS)), expected)


def test_what_no_thread_has_is_garbage():
    body = ("a: T.float64 = T.shuffle_down(X[u * 5 + t], 1)", "Y[u * 5 + t] = a")
    result = called(threads(NESTED, *body))
    np.testing.assert_array_equal(result, [*range(1, 15), np.nan])


def test_groups_wait_only_for_their_own_threads():
    body = (
        "for s in T.serial(t // 4):",
        "    a: T.float64 = T.shuffle_xor(X[t], 2, width=4)",
        "    Y[b * 8 + t] = Y[b * 8 + t] + a",
    )
    np.testing.assert_array_equal(called(threads(BLOCKS, *body), n=8), [0] * 4 + [6, 7, 4, 5])


def test_a_shuffle_that_only_some_threads_of_a_group_reach_is_an_error():
    body = ("if t != 3:", "    a: T.float64 = T.shuffle_xor(X[t], 1, width=4)")
    with pytest.raises(InterpreterError, match="t = 0 waits at a shuffle that other threads"):
        called(threads(BLOCKS, *body))


def test_a_shuffle_outside_of_loops_over_threads_is_an_error():
    with pytest.raises(InterpreterError, match="The shuffle of 'a' is outside"):
        called(flat("a: T.float64 = T.shuffle_xor(X[0], 1)"))
