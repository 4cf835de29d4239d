"""The behavior of all drivers: those of a GPU, which is a fake, and the interpreter of PTX."""

import subprocess
import sys
from pathlib import Path

import fake_drivers
import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.driver.driver_error import DriverError
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_cuda_mma_sp.driver.open_driver import open_driver
from gossamer_ir.interchange.records import Target

INSTALLED_BINDINGS = "installed cuda-bindings"
"""The package itself, in place of the fake one. It calls the library that stands in for the driver's."""
GPU_DRIVERS = ("pycuda", "cuda-bindings", INSTALLED_BINDINGS, "ctypes")
STREAM = 7
SCALED = (
    'for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):',
    '    for t in T.thread_binding(32, thread="threadIdx.x"):',
    "        if b * 32 + t < n:",
    "            Y[b * 32 + t] = X[b * 32 + t] * 2.0",
)


@pytest.fixture
def opened(monkeypatch, fake_gpu):
    """Opens a driver by its name."""

    def open_named(name):
        if name == "interpreter":
            return InterpreterDriver()
        if name == INSTALLED_BINDINGS:
            modules = fake_drivers.installed_bindings()
            if not modules:
                pytest.skip("cuda-bindings is not installed")
            for each, module in modules.items():
                monkeypatch.setitem(sys.modules, each, module)
            name = "cuda-bindings"
        return open_driver(name, 0)

    return open_named


@pytest.fixture(params=[*GPU_DRIVERS, "interpreter"])
def driver(request, opened):
    driver = opened(request.param)
    with driver.current():
        yield driver


@pytest.fixture(params=GPU_DRIVERS)
def gpu_driver(request, opened):
    driver = opened(request.param)
    with driver.current():
        yield driver


@pytest.fixture
def code(flat):
    """A kernel with three parameters, and the workspace."""
    artifact = CudaBackend().compile(flat(*SCALED), Target.parse("cuda-mma-sp:arch=sm_90"))
    return DeviceCode.decode(artifact.code)


def on_device(driver, array, stream=0):
    address = driver.allocate(array.nbytes)
    driver.copy_to_device(address, array, stream=stream)
    return address


@pytest.mark.parametrize("stream", [0, STREAM])
def test_a_kernel_runs_on_a_stream(driver, code, stream):
    (symbol,) = code.symbols.values()
    module = driver.load_module(code.ptx)
    function = driver.get_function(module, symbol)
    x = np.arange(40, dtype=np.float32)
    y = np.zeros(40, np.float32)
    at = [on_device(driver, array, stream) for array in (x, y)]
    workspace = driver.pin(4)
    workspace.write(np.full(4, -1))
    values = {"x": at[0], "y": at[1], "n": 40}
    kernel = next(each for each in code.module.functions if each.name != code.module.entry)
    arguments = [np.uint64(values[param.name]) for param in kernel.params]
    driver.launch(
        function,
        grid=(2, 1, 1),
        block=(32, 1, 1),
        arguments=[*arguments, np.uint64(workspace.address)],
        stream=stream,
    )
    driver.wait(stream)
    driver.copy_to_host(y, at[1], stream=stream)
    assert np.array_equal(y, 2 * x)
    assert workspace.read().tolist() == [-1] * 4
    driver.wait(None)
    driver.unload_module(module)
    for address in at:
        driver.free(address)


@pytest.mark.parametrize("stream", [0, STREAM])
def test_memory_is_cleared(driver, stream):
    at = on_device(driver, np.full(6, 3, np.int32))
    driver.clear(at + 8, 8, stream=stream)
    driver.wait(stream)
    values = np.zeros(6, np.int32)
    driver.copy_to_host(values, at, stream=stream)
    assert values.tolist() == [3, 3, 0, 0, 3, 3]


@pytest.mark.parametrize("stream", [0, STREAM])
def test_memory_is_copied_on_the_device(driver, stream):
    source = on_device(driver, np.arange(6, dtype=np.int32))
    at = on_device(driver, np.full(4, 9, np.int32))
    driver.copy_on_device(at + 4, source + 8, 8, stream=stream)
    driver.copy_on_device(at, source, 0, stream=stream)
    driver.wait(stream)
    values = np.zeros(4, np.int32)
    driver.copy_to_host(values, at, stream=stream)
    assert values.tolist() == [9, 2, 3, 9]


@pytest.mark.parametrize("stream", [0, STREAM])
def test_arrays_without_elements_are_not_copied(driver, stream):
    empty = np.zeros(0, np.float32)
    at = driver.allocate(1)
    driver.copy_to_device(at, empty, stream=stream)
    driver.copy_to_host(empty, at, stream=stream)


def test_integers_are_shared_with_the_host(driver):
    shared = driver.pin(3)
    shared.write(np.array([1, 2, 3]))
    assert shared.read().tolist() == [1, 2, 3]


def test_a_driver_describes_the_device(driver):
    limits = driver.limits
    assert limits.block_threads == 1024
    assert limits.grid_shape[1:] == (65535, 65535)
    assert limits.cuda_version == "13.0"
    free, total = driver.memory_info()
    assert total >= free


def test_events_measure_the_time_between_them(driver):
    start, end = driver.record(0), driver.record(0)
    assert 0 <= driver.seconds_between(start, end) < 1


def test_the_properties_of_a_gpu_are_read_from_the_driver(gpu_driver):
    limits = gpu_driver.limits
    assert (limits.name, limits.compute_capability) == ("Fake GPU", (9, 0))
    assert (limits.multiprocessors, limits.cache_bytes) == (132, 50 << 20)
    assert not gpu_driver.is_emulated


def test_a_kernel_says_how_many_threads_its_registers_leave(gpu_driver, code, fake_gpu):
    fake_gpu.function_threads = 768
    module = gpu_driver.load_module(code.ptx)
    (symbol,) = code.symbols.values()
    assert gpu_driver.get_function(module, symbol).block_threads == 768


@pytest.mark.parametrize("name", GPU_DRIVERS)
def test_the_context_of_others_is_current_afterwards(name, opened, fake_gpu):
    driver = opened(name)
    fake_gpu.contexts.append("another library's")
    with driver.current():
        assert fake_gpu.contexts == ["another library's", 0xC0]
    assert fake_gpu.contexts == ["another library's"]
    with pytest.raises(DriverError), driver.current():
        driver.allocate(1 << 50)
    assert fake_gpu.contexts == ["another library's"]
    assert fake_gpu.calls.count("cuDevicePrimaryCtxRetain") == 1


def test_errors_have_the_names_of_the_driver(gpu_driver, fake_gpu):
    fake_gpu.free_bytes = 10
    with pytest.raises(DriverError, match=r"cuMemAlloc.*CUDA_ERROR_OUT_OF_MEMORY.*out of memory"):
        gpu_driver.allocate(11)
    with pytest.raises(DriverError, match="a PTX JIT compilation failed") as caught:
        gpu_driver.load_module("not PTX")
    assert not caught.value.loses_context


@pytest.mark.parametrize("stream", [0, STREAM, None])
def test_a_fault_is_known_to_lose_the_context(gpu_driver, fake_gpu, stream):
    call = "cuCtxSynchronize" if stream is None else "cuStreamSynchronize"
    fake_gpu.refuse(call, "CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(DriverError) as caught:
        gpu_driver.wait(stream)
    assert caught.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert caught.value.loses_context


def test_the_library_has_the_prototypes_of_the_header():
    """The fake that ctypes calls has the same ones, or does not compile with the header."""
    try:
        import nvidia

        roots = [Path(path) for path in nvidia.__path__]
    except ImportError:
        roots = []
    roots.append(Path("/usr/local/cuda"))
    header = next((path for root in roots for path in root.rglob("include/cuda.h")), None)
    if header is None:
        pytest.skip("there is no cuda.h: install nvidia-cuda-runtime")
    command = ["gcc", "-fsyntax-only", "-Werror", "-DWITH_HEADER", f"-I{header.parent}"]
    subprocess.run([*command, str(fake_drivers.SOURCE)], check=True)
