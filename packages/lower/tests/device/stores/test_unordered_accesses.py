"""Accesses by different statements, in different threads or blocks, that no barrier orders."""

import itertools

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.script import parse_module
from gossamer_lower import lower_to_device, split_host_device, verify_stores

THREADS = 'for t in T.thread_binding(8, thread="threadIdx.x"):'
BLOCKS = 'for b in T.thread_binding(4, thread="blockIdx.x"):'
SHARED = 'S = T.alloc_buffer((32,), "float32", scope="shared")'


def indent(*lines, by=1):
    return tuple("    " * by + line for line in lines)


def in_threads(*lines):
    return (THREADS, *indent(*lines))


def in_block(*lines):
    """A block of eight threads with shared memory."""
    loop = 'for b in T.thread_binding(1, thread="blockIdx.x"):'
    return (loop, *indent(SHARED, THREADS), *indent(*lines, by=2))


def in_rows(*lines):
    """A block with two rows of threads and shared memory."""
    block = 'for b in T.thread_binding(1, thread="blockIdx.x"):'
    rows = 'for u in T.thread_binding(2, thread="threadIdx.y"):'
    return (block, *indent(SHARED, rows), *indent(*lines, by=2))


RACES = {
    "stores of threads": in_threads("Y[t] = X[t]", "Y[(t + 1) % 8] = 2.0"),
    "stores of blocks": (BLOCKS, *indent("Y[b] = X[b]", "Y[3 - b] = 2.0")),
    "a load after a store": in_threads("Y[t] = X[t]", "X[t + 8] = Y[7 - t]"),
    "a load before a store": in_threads("X[t + 8] = Y[t ^ 1]", "Y[t] = X[t]"),
    "sides of a condition": in_threads("if t < 4:", "    Y[t] = X[t]", "else:", "    Y[7 - t] = 1.0"),
    "a block's loops over threads": (
        BLOCKS,
        *indent(*in_threads("Y[b * 8 + t] = X[t]")),
        '    for u in T.thread_binding(8, thread="threadIdx.x"):',
        "        Y[(3 - b) * 8 + u] = 1.0",
    ),
    "loops over blocks": (
        THREADS,
        *indent(BLOCKS, "    Y[b * 8 + t] = X[t]"),
        *indent('for c in T.thread_binding(4, thread="blockIdx.x"):', "    Y[(3 - c) * 8 + t] = 1.0"),
    ),
    "a load outside of a loop over blocks": in_threads(
        "v: T.float32 = Y[t]", BLOCKS, "    T.atomic_add(Y[t], v + X[b])"
    ),
    "a load outside of one of two loops over blocks": (
        BLOCKS,
        *indent(
            "v: T.float32 = Y[b]",
            'for c in T.thread_binding(2, thread="blockIdx.y"):',
            "    T.atomic_add(Y[b], v)",
        ),
    ),
    "an atomic operation": in_threads("T.atomic_add(Y[0], X[t])", "if t == 0:", "    Y[0] = 1.0"),
    "two atomic operations": in_threads("T.atomic_add(Y[0], X[t])", "T.atomic_max(Y[0], X[t])"),
    "iterations of one thread": in_threads(
        "for i in T.serial(2):", "    Y[t * 2 + i] = X[t]", "    Y[15 - t * 2 - i] = 1.0"
    ),
    "after a barrier": in_block("S[t] = X[t]", "T.barrier()", "S[t + 8] = S[7 - t]", "Y[t] = S[8]"),
    "iterations with a barrier": in_block(
        "for i in T.serial(2):", *indent("S[t] = X[t]", "T.barrier()", "Y[i * 8 + t] = S[7 - t]")
    ),
    "a condition with a barrier": in_block(
        "S[t] = X[t]", "if n < 4:", "    T.barrier()", "Y[t] = S[7 - t]"
    ),
    "rows that threads exchange": in_rows(
        "for t in T.thread_binding(8, thread='threadIdx.x'):", "    S[u * 8 + t] = X[u * 8 + t]",
        "for v in T.thread_binding(8, thread='threadIdx.x'):", "    Y[u * 8 + v] = S[(1 - u) * 8 + v]",
    ),
    "rows that threads exchange in global memory": in_rows(
        "for t in T.thread_binding(8, thread='threadIdx.x'):", "    Y[u * 8 + t] = X[u * 8 + t]",
        "for v in T.thread_binding(8, thread='threadIdx.x'):", "    Y[16 + u * 8 + v] = Y[(1 - u) * 8 + v]",
    ),
    "iterations of rows": in_rows(
        "for i in T.serial(2):",
        *indent(
            "for t in T.thread_binding(8, thread='threadIdx.x'):",
            "    if i == 0:", "        S[u * 8 + t] = X[u * 8 + t]",
            "    else:", "        Y[u * 8 + t] = S[(1 - u) * 8 + t]",
        ),
    ),
    "a loop without iterations": in_block(
        "S[t] = X[t]", "for i in T.serial(0):", "    T.barrier()", "Y[t] = S[7 - t]"
    ),
}  # fmt: skip
ORDERED = {
    "one thread": in_threads("Y[t] = X[t]", "Y[t] = Y[t] + X[t]", "Y[t] = 2.0"),
    "other halves": in_threads("Y[t] = X[t]", "Y[t + 8] = 2.0", "Y[t + 16] = Y[t]"),
    "elements of one thread": in_threads("Y[t * 2] = X[t]", "Y[t * 2 + 1] = Y[t * 2]"),
    "sides of a condition": in_threads("if t < 4:", "    Y[t] = X[t]", "else:", "    Y[t] = 1.0"),
    "threads that conditions select": in_threads(
        "if t < 4:", "    Y[t] = X[t]", "if t >= 4:", "    Y[11 - t] = 1.0"
    ),
    "swizzled elements": in_threads("Y[t ^ 1] = X[t]", "Y[(t ^ 1) + 8] = Y[t ^ 1]"),
    "one element, loaded by several": in_threads("Y[t] = X[t]", "Y[t + 8] = Y[16 + t // 2]"),
    "blocks": (BLOCKS, *indent("Y[b] = X[b]", "Y[b + 4] = Y[b]")),
    "other elements than those that blocks add to": in_threads(
        "v: T.float32 = Y[t + 8]", BLOCKS, "    T.atomic_add(Y[t], v + X[b])"
    ),
    "a load outside of a loop over one block": in_threads(
        "v: T.float32 = Y[t]",
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        "    T.atomic_add(Y[t], v + X[b])",
    ),
    "loops over the threads of a block": (
        BLOCKS,
        *indent(*in_threads("Y[b * 8 + t] = X[t]")),
        '    for u in T.thread_binding(8, thread="threadIdx.x"):',
        "        Y[b * 8 + (7 - u)] = 1.0",
    ),
    "elements of arrays that are different numbers": (
        BLOCKS, *indent("if b == 0:", "    Y[0] = 1.0", "if b == 1:", "    Y[1] = Y[2]"),
    ),
    "atomic operations": in_threads("T.atomic_add(Y[0], X[t])", "T.atomic_add(Y[t // 2], X[t])"),
    "elements that threads of a row exchange": in_rows(
        "for t in T.thread_binding(8, thread='threadIdx.x'):", "    S[u * 8 + t] = X[u * 8 + t]",
        "for v in T.thread_binding(8, thread='threadIdx.x'):", "    Y[u * 8 + v] = S[u * 8 + 7 - v]",
    ),
    "rows that threads exchange after a barrier": in_rows(
        "for t in T.thread_binding(8, thread='threadIdx.x'):", "    S[u * 8 + t] = X[u * 8 + t]",
        "T.barrier()",
        "for v in T.thread_binding(8, thread='threadIdx.x'):", "    Y[u * 8 + v] = S[(1 - u) * 8 + v]",
    ),
    "iterations of rows": in_rows(
        "for i in T.serial(2):",
        *indent(
            "for t in T.thread_binding(8, thread='threadIdx.x'):",
            "    Y[(u * 2 + i) * 8 + t] = X[u * 8 + t]",
        ),
    ),
    "a barrier": in_block("S[t] = X[t]", "T.barrier()", "Y[t] = S[7 - t]"),
    "iterations with two barriers": in_block(
        "for i in T.serial(2):",
        *indent("S[t] = X[t]", "T.barrier()", "Y[i * 8 + t] = S[7 - t]", "T.barrier()"),
    ),
    "a tree of sums": in_block(
        "S[t] = X[t]", "T.barrier()",
        "if t < 4:", "    S[t] = S[t] + S[t + 4]", "T.barrier()",
        "if t < 2:", "    S[t] = S[t] + S[t + 2]", "T.barrier()",
        "if t == 0:", "    Y[0] = S[0] + S[1]",
    ),
    "a tree of sums in a loop": in_block(
        "S[t] = X[t]", "T.barrier()",
        "for i in T.serial(2):",
        *indent("if t < 4 - i * 2:", "    S[t] = S[t] + S[t + (4 - i * 2)]", "T.barrier()"),
        "if t == 0:", "    Y[0] = S[0] + S[1]",
    ),
}  # fmt: skip


def accesses(*lines):
    return "\n".join((
        "@T.prim_func",
        "def f(x: T.handle, y: T.handle, n: T.int64) -> None:",
        '    T.stage("flat")',
        '    X = T.match_buffer(x, (32,), "float32")',
        '    Y = T.match_buffer(y, (32,), "float32")',
        *indent(*lines),
    ))  # fmt: skip


def interpret(module):
    run(module, {"x": np.ones(32, np.float32), "y": np.zeros(32, np.float32), "n": 8})


@pytest.mark.parametrize("name", RACES)
def test_accesses_of_one_element_that_nothing_orders_are_refused(name):
    with pytest.raises(UnsupportedError) as caught:
        verify_stores(parse_module(accesses(*RACES[name])))
    assert caught.value.code == "lower.verify_stores.unordered"


@pytest.mark.parametrize("name", RACES)
def test_the_interpreter_finds_the_races_that_are_refused(name):
    with pytest.raises(InterpreterError, match=r"A race|no thread has written"):
        interpret(split_host_device(parse_module(accesses(*RACES[name]))))


@pytest.mark.parametrize("name", ORDERED)
def test_accesses_that_are_ordered_or_of_different_elements_are_accepted(name):
    module = parse_module(accesses(*ORDERED[name]))
    assert verify_stores(module) is module
    interpret(lower_to_device(module))


WAITED = ("T.commit_group()", "T.wait_group(0)", "T.barrier()")


@pytest.mark.parametrize("order", [*itertools.permutations(WAITED)])
def test_a_copy_is_ordered_by_a_barrier_after_the_wait_for_its_group(order):
    copy = ("with T.async_copy():", "    S[t] = X[t]")
    module = parse_module(accesses(*in_block(*copy, *order, "Y[t] = S[7 - t]")))
    if order == WAITED:
        verify_stores(module)
    else:
        with pytest.raises(UnsupportedError, match="barrier"):
            verify_stores(module)


DISJOINT = """
@T.prim_func
def f(y: T.handle, p: T.handle, q: T.handle) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (32,), "float32")
    P = T.match_buffer(p, (1, 4), "int32")
    Q = T.match_buffer(q, (1, 4), "int32")
    T.assume(sorted_segments(P, unique=True))
    T.assume(sorted_segments(Q, unique=True))
    T.assume({fact})
    for b in T.thread_binding(8, thread="blockIdx.x"):
        if b < 4:
            Y[P[0, b]] = 1.0
        else:
            Y[Q[0, b - 4]] = 2.0
"""


def test_elements_that_disjoint_arrays_select_are_different():
    verify_stores(parse_module(DISJOINT.format(fact="disjoint(P, Q)")))
    with pytest.raises(UnsupportedError, match=r"blocks of loop 'b'.*P\[0, b\].*kernel of its own"):
        verify_stores(parse_module(DISJOINT.format(fact="subset(P, Q)")))


def test_the_error_names_both_accesses():
    with pytest.raises(UnsupportedError) as caught:
        verify_stores(parse_module(accesses(*RACES["a load after a store"])))
    message = str(caught.value)
    assert "the store at the index 't' and by the load at the index '7 - t'" in message
    assert "elements of 'Y'" in message
    assert "loop 't' of 'f'" in message


INDICES = (
    "t",
    "t + 8",
    "7 - t",
    "t ^ 1",
    "t ^ 8",
    "t * 2",
    "t * 2 + 1",
    "t // 2 + 4",
    "t % 4",
    "t + 16",
)


@pytest.mark.parametrize(("first", "second"), [*itertools.product(INDICES[:7], INDICES)])
def test_accesses_are_accepted_exactly_if_they_have_no_race(first, second):
    lines = in_threads(f"Y[{first}] = X[t]", f"X[t] = Y[{second}]")
    module = parse_module(accesses(*lines))
    points = (
        [(eval(first, {"t": t}), t) for t in range(8)],
        [(eval(second, {"t": t}), t) for t in range(8)],
    )
    has_race = any(a == b and t != u for (a, t), (b, u) in itertools.product(*points))
    if has_race:
        with pytest.raises(UnsupportedError, match="barrier"):
            verify_stores(module)
    else:
        verify_stores(module)
