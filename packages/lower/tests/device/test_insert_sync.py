"""Barriers, and where threads of a block cannot wait for each other."""

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Barrier, For
from gossamer_ir.traversal.walk import collect
from gossamer_lower import insert_sync, split_host_device


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    Y[t] = 0.0",
                '    for i in T.thread_binding(n, thread="blockIdx.x"):',
                "        X[i] = 1.0",
            ),
            "lower.insert_sync.grid",
        ),
        (
            (
                'S = T.alloc_buffer((8, 4), "float32", scope="shared")',
                'for u in T.thread_binding(8, thread="threadIdx.y"):',
                "    for j in T.serial(T.int64(X[u])):",
                '        for t in T.thread_binding(4, thread="threadIdx.x"):',
                "            S[u, t] = X[t]",
                '        for v in T.thread_binding(4, thread="threadIdx.x"):',
                "            Y[u] = S[u, 3 - v]",
            ),
            "lower.insert_sync.barrier",
        ),
        (
            (
                'S = T.alloc_buffer((4,), "float32", scope="shared")',
                'for b in T.thread_binding(2, thread="blockIdx.x"):',
                '    for t in T.thread_binding(4, thread="threadIdx.x"):',
                "        T.guard(n > 4, X)",
                "        S[t] = X[t]",
                '    for u in T.thread_binding(4, thread="threadIdx.x"):',
                "        Y[u + b * 4] = S[3 - u]",
            ),
            "lower.insert_sync.barrier",
        ),
    ],
)
def test_a_barrier_that_not_all_threads_reach_is_refused(lines, code, flat):
    split = split_host_device(flat(*lines))
    with pytest.raises(UnsupportedError) as caught:
        insert_sync(split)
    assert caught.value.code == code


def test_only_kernels_get_barriers(flat):
    """Loops over threads of a function that no other launches are several kernels in one."""
    module = flat(
        'for t in T.thread_binding(4, thread="threadIdx.x"):',
        "    Y[t] = X[t]",
        'for u in T.thread_binding(4, thread="threadIdx.x"):',
        "    X[u] = Y[3 - u]",
    )
    assert insert_sync(module) == module


IN_THREADS = 'for t in T.thread_binding(4, thread="threadIdx.x"):'


@pytest.mark.parametrize(
    "lines",
    [
        ("    if t < 2:", "        T.barrier()"),
        ("    if X[t] > 0.0:", "        T.barrier()"),
        ("    if Y[0] > 0.0:", "        T.barrier()", "    Y[t] = 1.0"),
        ("    for i in T.serial(t + 1):", "        T.barrier()"),
        ("    for i in T.serial(4):", "        if (i + t) % 2 == 0:", "            T.barrier()"),
        ("    u: T.int64 = n - t", "    for i in T.serial(u):", "        T.barrier()"),
        ("    v: T.int64 = T.shuffle_xor(n, 1, width=4)", "    if v > 0:", "        T.barrier()"),
        ("    L = T.alloc_buffer((1,), 'float32', scope='local')", "    L[0] = X[t]",
         "    while L[0] > 0.0:", "        T.barrier()"),
    ],
)  # fmt: skip
def test_a_barrier_in_code_that_threads_run_differently_is_refused(lines, flat):
    with pytest.raises(UnsupportedError) as caught:
        insert_sync(split_host_device(flat(IN_THREADS, *lines)))
    assert caught.value.code == "lower.insert_sync.barrier"


@pytest.mark.parametrize(
    "lines",
    [
        ("    if n < 2:", "        T.barrier()"),
        ("    for i in T.serial(n):", "        if X[i] > 0.0:", "            T.barrier()"),
        ("    u: T.int64 = n // 2", "    for i in T.serial(u):", "        T.barrier()"),
    ],
)
def test_a_barrier_in_code_that_all_threads_run_is_accepted(lines, flat):
    split = split_host_device(flat(IN_THREADS, *lines))
    assert insert_sync(split) == split


def test_a_barrier_outside_of_one_of_the_loops_over_threads_is_checked(flat):
    split = split_host_device(
        flat(
            IN_THREADS,
            "    if t < 2:",
            "        T.barrier()",
            '    for u in T.thread_binding(2, thread="threadIdx.y"):',
            "        Y[t * 2 + u] = X[0]",
        )
    )
    with pytest.raises(UnsupportedError) as caught:
        insert_sync(split)
    assert caught.value.code == "lower.insert_sync.barrier"


@pytest.mark.parametrize(
    ("stored", "read", "barriers"),
    [("t // 2", "u // 2", 1), ("t", "u", 0), ("t ^ 1", "u ^ 1", 0), ("t ^ 1", "u", 1)],
)
def test_threads_wait_for_an_element_that_a_condition_lets_another_one_store(
    stored, read, barriers, flat
):
    """One of the threads that read it did not store: the condition does not hold for it."""
    lines = (
        'S = T.alloc_buffer((64,), "float32", scope="shared")',
        'for b in T.thread_binding(2, thread="blockIdx.x"):',
        '    for t in T.thread_binding(64, thread="threadIdx.x"):',
        "        if t % 2 == 0:",
        f"            S[{stored}] = X[t]",
        '    for u in T.thread_binding(64, thread="threadIdx.x"):',
        f"        Y[b * 64 + u] = S[{read}]",
    )
    kernel = insert_sync(split_host_device(flat(*lines))).functions[1]
    assert len(collect(Barrier, *kernel.body)) == barriers


def test_a_number_of_threads_modulo_a_constant_is_not_a_stage_of_a_pipeline(flat):
    """The element of a thread is the next element of another thread."""
    module = flat(
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((8,), "float32", scope="shared")',
        '    for t in T.thread_binding(8, thread="threadIdx.x"):',
        "        S[(t + 1) % 8] = X[t]",
        '    for u in T.thread_binding(8, thread="threadIdx.x"):',
        "        Y[u] = S[u % 8]",
    )
    assert len(collect(Barrier, *insert_sync(split_host_device(module)).functions[-1].body)) == 1


@pytest.mark.parametrize(("value", "place"), [("X[t]", 2), ("S[t, 0]", 1)])
def test_a_shuffle_is_no_barrier_for_the_threads_of_other_warps(value, place, flat):
    """The barrier is before the statement that reads: the shuffle, or the loop after it."""
    module = flat(
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((32, 2), "float32", scope="shared")',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
        '        for u in T.thread_binding(2, thread="threadIdx.y"):',
        "            S[t, u] = X[t * 2 + u]",
        f"        v: T.float32 = T.shuffle_xor({value}, 1)",
        '        for w in T.thread_binding(2, thread="threadIdx.y"):',
        "            Y[t * 2 + w] = S[t, 1 - w] + v",
    )
    kernel = insert_sync(split_host_device(module)).functions[-1]
    (threads,) = (loop for loop in collect(For, *kernel.body) if loop.thread == "threadIdx.x")
    assert [number for number, stmt in enumerate(threads.body) if stmt == Barrier()] == [place]


COPY = (
    'for t in T.thread_binding(8, thread="threadIdx.x"):',
    "    with T.async_copy():",
    "        S[t] = X[t]",
)
READ = (
    'for u in T.thread_binding(8, thread="threadIdx.x"):',
    "    T.wait_group(0)",
    "    Y[u] = S[7 - u]",
)


def in_block(*lines):
    block = (
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((8,), "float32", scope="shared")',
    )
    return (*block, *(f"    {line}" for line in lines))


WAITS = {
    "the next loop": (*COPY, "T.commit_group()", *READ),
    "a commit in the loop of the copies": (*COPY, "    T.commit_group()", *READ),
    "a commit in the loop of the wait": (*COPY, READ[0], "    T.commit_group()", *READ[1:]),
    "a part of the groups": (*COPY, "T.commit_group()", READ[0], "    T.wait_group(1)", READ[2]),
    "a condition": (*COPY, "T.commit_group()", "if n > 4:", *(f"    {line}" for line in READ)),
    "copies in a condition": ("if n > 4:", *(f"    {line}" for line in COPY), "T.commit_group()", *READ),
    "the next iteration": (
        "for i in T.serial(n):",
        *(f"    {line}" for line in (*READ, *COPY)),
        "    T.commit_group()",
    ),
    "a wait for earlier copies": (*COPY, "T.commit_group()", *COPY[:1], "    T.wait_group(1)", *READ),
    "a barrier after the read": (*COPY, "T.commit_group()", *READ, "    T.barrier()"),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_in_a_loop_over_threads_for_copies_before_it_is_refused(name, flat):
    split = split_host_device(flat(*in_block(*WAITS[name])))
    with pytest.raises(
        UnsupportedError, match=r"loop '(u|t_1)' of 'f_b' wait for copies"
    ) as caught:
        insert_sync(split)
    assert caught.value.code == "lower.insert_sync.wait"


IN_ONE_LOOP = (
    *COPY,
    "    T.commit_group()",
    "    T.wait_group(0)",
    "    T.barrier()",
    "    Y[t] = S[7 - t]",
)
WAITED = {
    "between loops": (*COPY, "T.commit_group()", "T.wait_group(0)", READ[0], READ[2]),
    "in the loop of the copies": IN_ONE_LOOP,
    "in each iteration": (
        "for i in T.serial(n):",
        *(f"    {line}" for line in (*IN_ONE_LOOP, "    T.barrier()")),
    ),
    "outside and inside": (*COPY, "T.commit_group()", "T.wait_group(0)", *READ),
    "before a barrier": (*COPY, "T.commit_group()", *READ[:2], "    T.barrier()", READ[2]),
    "before a barrier, for one group": (
        *(*COPY, "T.commit_group()", "T.commit_group()"),
        *(READ[0], "    T.wait_group(1)", "    T.barrier()", READ[2]),
    ),
    "before a barrier in each iteration, which copies for the next one": (
        "for i in T.serial(n):",
        *(f"    {line}" for line in (*COPY, "    T.commit_group()", "    for j in T.serial(2):")),
        *(f"            {line}" for line in ("T.wait_group(0)", "T.barrier()", "Y[t] = S[7 - t]")),
        *(f"            {line}" for line in ("T.barrier()", "if j < 1:")),
        *(f"            {line}" for line in ("    with T.async_copy():", "        S[t] = X[t]")),
        "            T.commit_group()",
    ),
}


@pytest.mark.parametrize("name", WAITED)
def test_a_wait_is_followed_by_a_barrier_before_others_read_the_copies(name, flat):
    module = insert_sync(split_host_device(flat(*in_block(*WAITED[name]))))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(module, {"x": x, "y": y, "n": 8})
    np.testing.assert_array_equal(y, x[::-1])
