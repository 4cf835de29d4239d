"""Reductions over threads run in the interpreter of PTX, which finds races and lanes that do not arrive."""

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_ir.interchange.records import Target

TARGET = Target.parse("cuda-mma-sp:driver=interpreter")
SUMS = (
    'for b in T.thread_binding(3, thread="blockIdx.x"):',
    "    Y[b] = 1",
    "    for s in T.serial((n // 3 + {threads} - 1) // {threads}):",
    '        for t in T.thread_binding({threads}, thread="threadIdx.x"):',
    "            if s * {threads} + t < n // 3:",
    "                Y[b] = Y[b] {op} X[b * (n // 3) + s * {threads} + t]",
)
TILES = (
    'for b in T.thread_binding(2, thread="blockIdx.x"):',
    '    for u in T.thread_binding(5, thread="threadIdx.y"):',
    "        if b * 5 + u < n // 24:",
    "            Y[b * 5 + u] = 0.0",
    "            for s in T.serial(24 // {threads}):",
    '                for t in T.thread_binding({threads}, thread="threadIdx.x"):',
    "                    Y[b * 5 + u] = Y[b * 5 + u] + X[(b * 5 + u) * 24 + s * {threads} + t]",
)


def called(module, x):
    backend, y = CudaBackend(), np.full(x.size, 9, x.dtype)
    backend.load(backend.compile(module, TARGET))(x, y, x.size)
    return y


@pytest.mark.parametrize("threads", [1, 2, 7, 32, 33, 48, 64, 100, 1024])
def test_any_number_of_threads_adds_up(threads, flat):
    x = np.arange(3 * 77, dtype=np.int32)
    y = called(flat(*(line.format(threads=threads, op="+") for line in SUMS), dtype="int32"), x)
    np.testing.assert_array_equal(y[:3], 1 + x.reshape(3, -1).sum(axis=1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint16"])
@pytest.mark.parametrize("threads", [16, 40])
def test_values_of_any_dtype_are_multiplied(threads, dtype, flat):
    x = np.array([2, 1, 1, 3] * 12, dtype)
    x[12:] = 1
    y = called(flat(*(line.format(threads=threads, op="*") for line in SUMS), dtype=dtype), x)
    np.testing.assert_array_equal(y[:3], np.prod(x.reshape(3, -1), axis=1, dtype=dtype))


@pytest.mark.parametrize("threads", [4, 8])
def test_rows_of_one_warp_need_not_be_as_many(threads, flat):
    x = np.arange(24 * 7, dtype=np.float32)
    y = called(flat(*(line.format(threads=threads) for line in TILES)), x)
    np.testing.assert_array_equal(y[:7], x.reshape(7, 24).sum(axis=1))
    assert (y[7:] == 9).all()


@pytest.mark.parametrize("threads", [3, 12, 24])
def test_groups_that_share_warps_use_shared_memory(threads, flat):
    lines = [*TILES[:2], *(line[4:] for line in TILES[3:])]
    x = np.arange(240, dtype=np.float32)
    y = called(flat(*(line.format(threads=threads) for line in lines)), x)
    np.testing.assert_array_equal(y[:10], x.reshape(10, 24).sum(axis=1))
