"""Shuffles of values of every dtype, in groups of every width, run in the interpreter of PTX."""

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

TARGET = Target.parse("cuda-mma-sp:driver=interpreter")
EXCHANGES = [("xor", 4, 8, 64), ("down", 3, 32, 48), ("down", 1, 2, 7), ("xor", 16, 32, 96)]


def called(module, *arrays):
    backend = CudaBackend()
    backend.load(backend.compile(module, TARGET))(*arrays, arrays[0].size)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "uint16", "int64", "bool"]
)
@pytest.mark.parametrize(("op", "offset", "width", "threads"), EXCHANGES)
def test_a_thread_gets_the_value_of_another_one(flat, dtype, op, offset, width, threads):
    at = f"b * {threads} + t"
    module = flat(
        f'for b in T.thread_binding(n // {threads}, thread="blockIdx.x"):',
        f'    for t in T.thread_binding({threads}, thread="threadIdx.x"):',
        f"        v: T.{dtype} = T.shuffle_{op}(X[{at}], {offset}, width={width})",
        f"        if t % {width} + {offset} < {width} and t + {offset} < {threads}:",
        f"            Y[{at}] = v",
        dtype=dtype,
    )
    x = (
        (np.arange(2 * threads) % 3 == 0)
        if dtype == "bool"
        else np.arange(2 * threads).astype(dtype)
    )
    y = np.zeros(2 * threads, dtype)
    called(module, x, y)
    thread = np.arange(threads)
    other = thread ^ offset if op == "xor" else thread + offset
    has_other = (thread % width + offset < width) & (thread + offset < threads)
    rows = x.reshape(2, threads)
    expected = np.where(has_other, rows[:, np.where(has_other, other, 0)], rows.dtype.type(0))
    np.testing.assert_array_equal(y.reshape(2, threads), expected)


def test_a_shuffle_that_some_lanes_skip_is_a_fault(flat):
    module = flat(
        'for t in T.thread_binding(32, thread="threadIdx.x"):',
        "    if X[t] > 0.0:",
        "        v: T.float32 = T.shuffle_xor(X[t], 1)",
        "        Y[t] = v",
    )
    with pytest.raises(ArgumentError, match="some lanes of a warp reach a shuffle") as caught:
        called(module, np.arange(32, dtype=np.float32), np.zeros(32, np.float32))
    assert caught.value.code == "cuda.fault"
