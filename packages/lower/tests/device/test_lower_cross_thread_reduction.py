"""Reductions over threads: any number of threads, any operation, any dtype; what cannot wait is refused."""

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Barrier, Shuffle
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import lower_cross_thread_reduction, lower_to_device

ROWS = 3


def sums(threads, *, op="Y[b] + X[{at}]"):
    """A sum of each of three rows: a part of a row is that of one iteration."""
    at = f"b * (n // {ROWS}) + s * {threads} + t"
    return (
        f'for b in T.thread_binding({ROWS}, thread="blockIdx.x"):',
        f"    for s in T.serial((n // {ROWS} + {threads} - 1) // {threads}):",
        f'        for t in T.thread_binding({threads}, thread="threadIdx.x"):',
        f"            if s * {threads} + t < n // {ROWS}:",
        f"                Y[b] = {op.format(at=at)}",
    )


def called(module, x, y):
    run(module, {"x": x, "y": y, "n": x.size})
    return y


def lowered(module):
    result = lower_cross_thread_reduction(module)
    verify(result)
    verify(lower_to_device(module))
    return result


@pytest.mark.parametrize("threads", [1, 2, 5, 8, 31, 32, 33, 48, 64, 100, 96, 1024])
def test_any_number_of_threads_adds_up(threads, flat):
    module = lowered(flat(*sums(threads), dtype="int32"))
    x, y = np.arange(ROWS * 77, dtype=np.int32), np.full(ROWS * 77, 5, np.int32)
    expected = y.copy()
    expected[:ROWS] += x.reshape(ROWS, -1).sum(axis=1, dtype=np.int32)
    np.testing.assert_array_equal(called(module, x, y), expected)


@pytest.mark.parametrize(("threads", "barriers"), [(32, 0), (16, 0), (64, 2), (5, 2)])
def test_only_threads_of_several_warps_wait(threads, barriers, flat):
    module = lowered(flat(*sums(threads)))
    assert len(collect(Barrier, module)) == barriers
    assert collect(Shuffle, module)


OPERATIONS = {
    "add": ("Y[b] + X[{at}]", np.add),
    "mul": ("X[{at}] * Y[b]", np.multiply),
    "min": ("T.min(Y[b], X[{at}])", np.minimum),
    "max": ("T.max(Y[b], X[{at}])", np.maximum),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64"])
@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("threads", [8, 40])
def test_any_operation_combines_values_of_any_dtype(threads, op, dtype, flat):
    text, function = OPERATIONS[op]
    module = lowered(flat(*sums(threads, op=text), dtype=dtype))
    x = np.random.default_rng(0).integers(1, 3, ROWS * 11).astype(dtype)
    y = np.full(x.size, 2, dtype)
    expected = y.copy()
    rows = function.reduce(x.reshape(ROWS, -1), axis=1, dtype=dtype)
    expected[:ROWS] = function(y[:ROWS], rows)
    np.testing.assert_array_equal(called(module, x, y), expected)


@pytest.mark.parametrize("op", ["and", "or"])
def test_bools_are_combined(op, flat):
    module = lowered(flat(*sums(8, op=f"Y[b] {op} X[{{at}}]"), dtype="bool"))
    x, y = np.arange(ROWS * 9) % 5 != 0, np.arange(ROWS * 9) % 2 == 0
    function = np.logical_and if op == "and" else np.logical_or
    expected = y.copy()
    expected[:ROWS] = function(y[:ROWS], function.reduce(x.reshape(ROWS, -1), axis=1))
    np.testing.assert_array_equal(called(module, x, y), expected)


TILES = (
    'for b in T.thread_binding(2, thread="blockIdx.x"):',
    '    for u in T.thread_binding({rows}, thread="threadIdx.y"):',
    "        if b * {rows} + u < n // 24:",
    "            i: T.int64 = b * {rows} + u",
    "            Y[i] = 0.0",
    "            for s in T.serial(24 // {threads}):",
    '                for t in T.thread_binding({threads}, thread="threadIdx.x"):',
    "                    Y[i] = Y[i] + X[i * 24 + s * {threads} + t]",
)


@pytest.mark.parametrize("threads", [4, 8])
def test_rows_of_one_warp_need_not_be_as_many(threads, flat):
    module = lowered(flat(*(line.format(rows=5, threads=threads) for line in TILES)))
    x, y = np.arange(24 * 7, dtype=np.float32), np.full(24 * 7, 9, np.float32)
    expected = y.copy()
    expected[:7] = x.reshape(7, 24).sum(axis=1)
    np.testing.assert_array_equal(called(module, x, y), expected)


@pytest.mark.parametrize("threads", [3, 6, 12, 24])
def test_groups_that_share_warps_wait_and_must_all_get_there(threads, flat):
    lines = [line.format(rows=5, threads=threads) for line in TILES]
    with pytest.raises(UnsupportedError) as caught:
        lowered(flat(*lines))
    assert caught.value.code == "lower.lower_cross_thread_reduction.barrier"
    # Without the condition, all rows get there.
    always = flat(*lines[:2], *(line[4:] for line in lines[3:]))
    x, y = np.arange(240, dtype=np.float32), np.full(240, 9, np.float32)
    expected = y.copy()
    expected[:10] = x.reshape(10, 24).sum(axis=1)
    np.testing.assert_array_equal(called(lowered(always), x, y), expected)


@pytest.mark.parametrize(("first", "second"), [("x", "y"), ("y", "x"), ("y", "z")])
def test_several_axes_are_reduced_together(first, second, flat):
    module = lowered(
        flat(
            f'for t in T.thread_binding(4, thread="threadIdx.{first}"):',
            f'    for u in T.thread_binding(6, thread="threadIdx.{second}"):',
            "        Y[0] = Y[0] + X[t * 6 + u]",
        )
    )
    x, y = np.arange(24, dtype=np.float32), np.zeros(24, np.float32)
    assert called(module, x, y)[0] == x.sum()


def test_the_outer_axis_is_reduced_beside_threads_of_the_inner_one(flat):
    module = lowered(
        flat(
            'for c in T.thread_binding(4, thread="threadIdx.x"):',
            '    for t in T.thread_binding(6, thread="threadIdx.y"):',
            "        Y[c] = Y[c] + X[t * 4 + c]",
        )
    )
    x, y = np.arange(24, dtype=np.float32), np.zeros(24, np.float32)
    np.testing.assert_array_equal(called(module, x, y)[:4], x.reshape(6, 4).sum(axis=0))


def test_several_reductions_share_their_loops(flat):
    module = lowered(
        flat(
            'for b in T.thread_binding(1, thread="blockIdx.x"):',
            '    Z = T.alloc_buffer((1,), "float32", scope="local")',
            "    Z[0] = 1.0",
            '    for t in T.thread_binding(16, thread="threadIdx.x"):',
            "        Z[0] = Z[0] * X[t]",
            "        Y[0] = T.max(Y[0], X[t])",
            "    Y[1] = Z[0]",
        )
    )
    x, y = np.full(16, 2, np.float32), np.zeros(16, np.float32)
    x[3] = 3
    np.testing.assert_array_equal(called(module, x, y)[:2], [3, 3 * 2**15])


def test_an_element_that_may_not_exist_is_left_alone(flat):
    module = lowered(
        flat(
            'for b in T.thread_binding(4, thread="blockIdx.x"):',
            "    if b < 2:",
            "        for s in T.serial(n - 14):",
            '            for t in T.thread_binding(8, thread="threadIdx.x"):',
            "                Y[b * 8] = Y[b * 8] + X[t]",
        )
    )
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    assert called(module, x, y).tolist() == [16] + [0] * 7 + [16] + [0] * 7


def test_conditions_that_read_what_may_not_exist_are_tested_in_their_order(flat):
    module = lowered(
        flat(
            'for b in T.thread_binding(3, thread="blockIdx.x"):',
            "    if b * 8 < n:",
            "        for s in T.serial(T.int64(X[b * 8])):",
            '            for t in T.thread_binding(8, thread="threadIdx.x"):',
            "                Y[b * 8] = Y[b * 8] + X[t]",
        )
    )
    x, y = np.full(16, 2, np.float32), np.zeros(16, np.float32)
    assert called(module, x, y).tolist() == [32] + [0] * 7 + [32] + [0] * 7
