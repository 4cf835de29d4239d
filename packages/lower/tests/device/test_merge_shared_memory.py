"""`merge_shared_memory`: which buffers share memory, and that their values do not."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.core.build import integer_value
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, Barrier
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import lower_to_device

HEAD = """
@T.prim_func
def f(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (64,), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    for b in T.thread_binding(2, thread="blockIdx.x"):
"""
REVERSE = """
{name} = T.alloc_buffer(({rows}, {columns}), "{dtype}", scope="shared")
for t_{name} in T.thread_binding(32, thread="threadIdx.x"):
    {name}[t_{name} // {columns}, t_{name} % {columns}] = T.{dtype}({source}[b * 32 + t_{name}])
for u_{name} in T.thread_binding(32, thread="threadIdx.x"):
    Y[b * 32 + u_{name}] = T.float32({name}[(31 - u_{name}) // {columns}, (31 - u_{name}) % {columns}])
"""


def reverse(name, *, source, columns=8, rows=4, dtype="float32"):
    """Statements that reverse the elements of a block through a buffer."""
    text = REVERSE.format(name=name, source=source, columns=columns, rows=rows, dtype=dtype)
    return text.strip().splitlines()


def program(*lines):
    module = parse_module(HEAD + "\n".join(f"        {line}" for line in lines))
    verify(module)
    return module


def buffers(module):
    return {
        node.buffer.name: tuple(map(integer_value, node.buffer.shape))
        for node in collect(Allocate, module)
    }


def results(module):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(module, {"x": x, "y": y})
    return y


TWICE = (*reverse("S", source="X"), *reverse("R", source="Y", columns=16, rows=3))
LOOPS = (
    "for i in T.serial(2):",
    *(f"    {line}" for line in reverse("S", source="X")),
    "for j in T.serial(1):",
    *(f"    {line}" for line in reverse("R", source="Y", columns=16, rows=2)),
)
AROUND = (
    'W = T.alloc_buffer((32,), "float32", scope="shared")',
    'for v in T.thread_binding(32, thread="threadIdx.x"):',
    "    W[v] = X[b * 32 + v]",
    *LOOPS,
    'for w in T.thread_binding(32, thread="threadIdx.x"):',
    "    Y[b * 32 + w] = Y[b * 32 + w] + W[31 - w]",
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (TWICE, {"S": (48,)}),
        (LOOPS, {"S": (32,)}),
        (AROUND, {"W": (32,), "S": (32,)}),
        (
            (*reverse("S", source="X"), *reverse("R", source="Y", dtype="int32")),
            {"S": (4, 8), "R": (4, 8)},
        ),
    ],
    ids=["one after the other", "in two loops", "around both", "of two dtypes"],
)
def test_buffers_that_are_live_at_different_times_share_memory(lines, expected):
    module = program(*lines)
    split = lower_to_device(module)
    assert buffers(split) == expected
    verify(split)
    np.testing.assert_array_equal(results(split), results(module))


def test_a_barrier_is_between_the_buffers_that_share_memory():
    """The first reads of one buffer are before the first stores to the next one."""
    lines = (*reverse("S", source="X"), *reverse("R", source="X"))
    assert len(collect(Barrier, lower_to_device(program(*lines)))) >= 3


def test_a_buffer_that_copies_may_still_fill_shares_nothing():
    copied = [
        'A = T.alloc_buffer((32,), "float32", scope="shared")',
        'for v in T.thread_binding(32, thread="threadIdx.x"):',
        "    with T.async_copy():",
        "        A[v] = X[b * 32 + v]",
    ]
    assert set(buffers(lower_to_device(program(*copied, *reverse("S", source="X"))))) == {
        "A",
        "S",
    }
    before = program(*reverse("S", source="X"), *copied)
    assert set(buffers(lower_to_device(before))) == {"S"}
