"""Kernels of a module, their launches, and what is refused."""

import pytest
from msgspec.structs import replace

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Launch
from gossamer_ir.traversal.walk import stmts
from gossamer_ir.verify import verify
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
    ],
)
def test_what_a_host_cannot_do_is_refused(lines, code, flat):
    with pytest.raises(UnsupportedError) as caught:
        split_host_device(flat(*lines))
    assert caught.value.code == code


def test_a_kernel_that_is_launched_twice_stays_one_function(flat):
    split = split_host_device(flat(*GRID))
    entry, kernel = split.functions
    twice = replace(split, functions=(replace(entry, body=entry.body * 2), kernel))
    assert verify(split_host_device(verify(twice))) == twice
