"""Kernels by a driver: what it is asked to do, and errors of calls."""

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device.copying_kernel import copying_kernel
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

TARGET = Target.parse("cuda-mma-sp:driver=interpreter")
DOUBLE = (
    'for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):',
    '    for t in T.thread_binding(32, thread="threadIdx.x"):',
    "        if b * 32 + t < n:",
    "            Y[b * 32 + t] = X[b * 32 + t] * 2.0",
)


class Recorder(InterpreterDriver):
    """Records launches, and the memory that is in use."""

    def __init__(self):
        super().__init__()
        self.launches, self.used = [], set()

    def allocate(self, size):
        address = super().allocate(size)
        self.used.add(address)
        return address

    def free(self, address):
        self.used.remove(address)
        super().free(address)

    def launch(self, function, *, grid, block, arguments, stream):
        self.launches.append((grid, block))
        super().launch(function, grid=grid, block=block, arguments=arguments, stream=stream)


def kernel_of(module, driver):
    return copying_kernel(CudaBackend().compile(module, TARGET), GpuDevice(driver))


def arrays(size):
    return np.arange(size, dtype=np.float32), np.zeros(size, np.float32)


@pytest.mark.parametrize("size", [1, 32, 33, 100])
def test_the_geometry_follows_from_the_sizes_of_a_call(size, flat):
    driver = Recorder()
    kernel = kernel_of(flat(*DOUBLE), driver)
    x, y = arrays(size)
    kernel(x, y, size)
    assert np.array_equal(y, 2 * x)
    assert driver.launches == [((-(-size // 32), 1, 1), (32, 1, 1))]
    assert driver.used == set()
    assert kernel.emulator == "the interpreter of PTX"


def test_an_empty_grid_is_not_launched(flat):
    driver = Recorder()
    kernel_of(flat(*DOUBLE), driver)(*arrays(0), 0)
    assert driver.launches == []


def test_buffers_of_the_program_are_memory_of_a_call_and_cleared(flat):
    lines = (
        'S = T.alloc_buffer((n,), "float32")',
        'for b in T.thread_binding(n, thread="blockIdx.x"):',
        "    S[b] = S[b] + X[b]",
        'for c in T.thread_binding(n, thread="blockIdx.x"):',
        "    Y[c] = S[n - 1 - c]",
    )
    driver = Recorder()
    x, y = arrays(5)
    kernel_of(flat(*lines), driver)(x, y, 5)
    assert np.array_equal(y, x[::-1])
    assert driver.used == set()


def test_a_grid_that_no_gpu_launches_is_refused(flat):
    lines = ('for b in T.thread_binding(n * 70000, thread="blockIdx.y"):', "    Y[b] = X[0]")
    with pytest.raises(ArgumentError, match="needs 70000 blocks along y") as caught:
        kernel_of(flat(*lines), Recorder())(*arrays(1), 1)
    assert caught.value.code == "cuda.launch"


def test_the_memory_of_calls_does_not_grow(flat):
    driver = Recorder()
    kernel = kernel_of(flat(*DOUBLE), driver)
    x, y = arrays(100)
    kernel(x, y, 100)
    size = driver.memory_info()[1]
    kernel(x, y, 100)
    assert driver.memory_info()[1] == size


def test_a_failed_bounds_check_names_the_buffer(flat):
    lines = (
        'for b in T.thread_binding(n, thread="blockIdx.x"):',
        "    T.guard(b + n < n, X)",
        "    Y[b] = X[b + n]",
    )
    kernel = kernel_of(flat(*lines), Recorder())
    for _ in range(2):
        with pytest.raises(ArgumentError, match="'X'") as caught:
            kernel(*arrays(4), 4)
        assert caught.value.code == "kernel.out_of_bounds"


def test_after_a_fault_other_kernels_run(flat):
    failing = ('for b in T.thread_binding(n, thread="blockIdx.x"):', "    Y[b] = X[b + n]")
    driver = Recorder()
    with pytest.raises(ArgumentError, match="out of bounds") as caught:
        kernel_of(flat(*failing), driver)(*arrays(4), 4)
    assert caught.value.code == "cuda.fault"
    assert driver.used == set()
    x, y = arrays(4)
    kernel_of(flat(*DOUBLE), driver)(x, y, 4)
    assert np.array_equal(y, 2 * x)
