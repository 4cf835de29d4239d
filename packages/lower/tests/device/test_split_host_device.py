"""Kernels of a module, their launches, and what is refused."""

import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Launch
from gossamer_ir.traversal.walk import stmts
from gossamer_lower import split_host_device

COPY = ("    Y[i] = X[i]",)
GRID = ('for i in T.thread_binding(n, thread="blockIdx.x"):', *COPY)


def launches(module):
    entry = module.functions[0]
    return [stmt for stmt in stmts(entry.body) if isinstance(stmt, Launch)]


@pytest.mark.parametrize(
    ("lines", "kernels"),
    [
        (GRID, ["f_i"]),
        ((*GRID, "Y[0] = X[0] + 1.0", "Y[1] = X[0] + 2.0"), ["f_i", "f_statements"]),
        (("for i in T.serial(n):", *COPY), ["f_statements"]),
        (("for s in T.serial(3):", *(f"    {line}" for line in GRID)), ["f_i"]),
        (("if n > 4:", *(f"    {line}" for line in GRID)), ["f_i"]),
    ],
)
def test_the_entry_launches_kernels(lines, kernels, flat):
    split = split_host_device(flat(*lines))
    assert [each.function for each in launches(split)] == kernels
    assert [function.name for function in split.functions] == ["f", *kernels]


def test_sizes_that_are_read_from_an_array_are_read_by_each_kernel(flat):
    lines = (
        "a: T.float32 = X[0]",
        'for i in T.thread_binding(n, thread="blockIdx.x"):',
        "    Y[i] = a",
    )
    split = split_host_device(flat(*lines))
    assert [param.name for param in split.functions[1].params] == ["x", "y", "n"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            ('for i in T.thread_binding(T.int64(X[0]), thread="blockIdx.x"):', *COPY),
            "lower.split_host_device.extent",
        ),
        (
            ('for t in T.thread_binding(4, thread="threadIdx.x"):', "    Y[0] = X[t]"),
            "lower.check_stores.reduction",
        ),
        (("if X[0] > 0.0:", *(f"    {line}" for line in GRID)), "lower.split_host_device.host"),
        (("Y[0] = 1.0", "a: T.float32 = Y[0]", *GRID), "lower.split_host_device.host"),
        (
            (
                'S = T.alloc_buffer((4,), "float32", scope="shared")',
                'for i in T.thread_binding(4, thread="threadIdx.x"):',
                "    S[i] = X[i]",
                'for j in T.thread_binding(4, thread="threadIdx.x"):',
                "    Y[j] = S[j]",
            ),
            "lower.split_host_device.scope",
        ),
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
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                '    S = T.alloc_buffer((1,), "float32", scope="shared")',
                "    S[0] = X[t]",
                "    Y[t] = S[0]",
            ),
            "lower.check_stores.shared",
        ),
    ],
)
def test_what_threads_cannot_do_is_refused(lines, code, flat):
    with pytest.raises(UnsupportedError) as caught:
        split_host_device(flat(*lines))
    assert caught.value.code == code
