"""Kernels on arrays of a GPU, which is a fake, by each of its drivers."""

import gc

import numpy as np
import pytest
from fake_gpu import FakeArray

from gossamer_backend import CallContext, Device, Kernel
from gossamer_backend.plugin_api import FixedArguments, view_of
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device.device_array import DeviceArray
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module, print_module

BACKEND = CudaBackend()
GPU = Device(2, 0)
STREAM = 7
WAITS = {"cuStreamSynchronize", "cuCtxSynchronize"}
DOUBLE = (
    'for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):',
    '    for t in T.thread_binding(32, thread="threadIdx.x"):',
    "        if b * 32 + t < n:",
    "            Y[b * 32 + t] = X[b * 32 + t] * 2.0",
)
REVERSED = (
    'S = T.alloc_buffer((n,), "float32")',
    'for b in T.thread_binding(n, thread="blockIdx.x"):',
    "    S[b] = S[b] + X[b]",
    'for c in T.thread_binding(n, thread="blockIdx.x"):',
    "    Y[c] = S[n - 1 - c]",
)
GUARDED = (
    'for b in T.thread_binding(n, thread="blockIdx.x"):',
    "    T.guard(b + n < n, X)",
    "    Y[b] = X[b + n]",
)
FAULTY = ('for b in T.thread_binding(n, thread="blockIdx.x"):', "    Y[b] = X[b + n]")


@pytest.fixture(params=["pycuda", "cuda-bindings", "ctypes"])
def load(request, fake_gpu):
    def kernel(module, *options):
        target = Target.parse(",".join((f"cuda-mma-sp:driver={request.param}", *options)))
        return BACKEND.load(BACKEND.compile(module, target))

    return kernel


def on(stream):
    return CallContext(GPU, stream)


def pair(gpu, size):
    return gpu.array(np.arange(size, dtype=np.float32)), gpu.array(np.zeros(size, np.float32))


def calls_of(gpu, run):
    """The functions that something calls."""
    before = len(gpu.calls)
    run()
    return set(gpu.calls[before:])


@pytest.mark.parametrize("stream", [0, STREAM])
def test_a_call_returns_before_the_kernel_has_run(load, flat, fake_gpu, stream):
    kernel = load(flat(*DOUBLE))
    assert isinstance(kernel, Kernel)
    x, y = pair(fake_gpu, 70)
    bound = kernel.bind(x, y, 70, context=on(stream))
    assert not calls_of(fake_gpu, bound) & WAITS
    assert fake_gpu.launches == [((3, 1, 1), (32, 1, 1), stream)]
    assert not y.values().any()
    kernel.memory.wait(stream)
    assert np.array_equal(y.values(), 2 * np.arange(70))


def test_sizes_follow_from_arrays_and_nothing_is_copied(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    x, y = pair(fake_gpu, 33)
    called = calls_of(fake_gpu, lambda: kernel(x=x, y=y))
    assert not {name for name in called if "Memcpy" in name}
    kernel.memory.wait(None)
    assert np.array_equal(y.values(), 2 * np.arange(33))


@pytest.mark.parametrize("stream", [0, STREAM])
def test_a_bound_call_can_be_captured_in_a_graph(load, flat, fake_gpu, stream):
    x, y = pair(fake_gpu, 5)
    bound = load(flat(*REVERSED)).bind(x, y, 5, context=on(stream))
    bound()  # loads what the driver loads late
    bound.kernel.memory.wait(stream)
    fake_gpu.begin_capture(stream)
    bound()
    graph = fake_gpu.end_capture(stream)
    assert len(graph) == 3
    for turn in range(1, 3):
        fake_gpu.memory.write(x.address, np.full(5, turn, np.float32))
        fake_gpu.launch_graph(graph, stream)
        bound.kernel.memory.wait(stream)
        assert y.values().tolist() == [turn] * 5


def test_the_first_call_on_a_stream_can_be_captured(load, flat, fake_gpu):
    x, y = pair(fake_gpu, 5)
    bound = load(flat(*REVERSED)).bind(x, y, 5, context=on(STREAM))
    fake_gpu.begin_capture(STREAM)
    bound()
    assert len(fake_gpu.end_capture(STREAM)) == 3


def test_memory_of_calls_is_used_again_by_their_stream(load, flat, fake_gpu):
    kernel = load(flat(*REVERSED))
    x, y = pair(fake_gpu, 5)
    for _ in range(3):
        kernel(x, y, 5, context=on(STREAM))
    assert fake_gpu.calls.count("cuMemAlloc") == 1
    kernel(x, y, 5, context=on(STREAM + 1))
    assert fake_gpu.calls.count("cuMemAlloc") == 2
    assert "cuMemFree" not in fake_gpu.calls


def test_a_context_provides_the_scratch_memory_of_a_call(load, flat, fake_gpu):
    kernel = load(flat(*REVERSED))
    sizes = []

    def scratch(size):
        sizes.append(size)
        return fake_gpu.array(np.zeros(size, np.uint8))

    x, y = pair(fake_gpu, 5)
    kernel(x, y, 5, context=CallContext(GPU, STREAM, scratch))
    kernel.memory.wait(STREAM)
    assert (y.values().tolist(), sizes) == ([4, 3, 2, 1, 0], [256])
    assert "cuMemAlloc" not in fake_gpu.calls


class Exported:
    """An array whose owner is told the stream that is going to use it."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        raise BufferError("seen")


@pytest.mark.parametrize(("stream", "told"), [(None, None), (0, None), (STREAM, STREAM)])
def test_an_exporter_by_dlpack_is_told_the_stream(load, flat, fake_gpu, stream, told):
    x, y = pair(fake_gpu, 5)
    exported = Exported(x)
    with pytest.raises(ArgumentError, match="seen"):
        load(flat(*DOUBLE)).bind(exported, y, 5, context=on(stream))
    assert exported.streams == [told]


def test_the_stream_that_writes_an_array_is_waited_for(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    _, y = pair(fake_gpu, 5)
    x = FakeArray(fake_gpu, np.zeros(5, np.float32), stream=9)
    fake_gpu.work[9].append(lambda: fake_gpu.memory.write(x.address, np.ones(5, np.float32)))
    kernel(x, y, 5, context=on(STREAM))
    kernel.memory.wait(STREAM)
    assert y.values().tolist() == [2] * 5


def test_streams_of_other_packages(load, flat, fake_gpu):
    class TorchStream:
        cuda_stream = STREAM

    class Described:
        def __cuda_stream__(self):
            return 0, STREAM

    kernel = load(flat(*DOUBLE))
    for stream in (TorchStream(), Described()):
        kernel(*pair(fake_gpu, 5), 5, context=on(stream))
    assert {stream for _, _, stream in fake_gpu.launches} == {STREAM}
    with pytest.raises(ArgumentError, match="type 'str'") as caught:
        kernel(*pair(fake_gpu, 5), 5, context=on("main"))
    assert caught.value.code == "cuda.stream"


def test_a_context_of_another_device_is_refused(load, flat, fake_gpu):
    with pytest.raises(ArgumentError, match=r"runs on 'cuda:0'.*'cuda:1'") as caught:
        load(flat(*DOUBLE))(*pair(fake_gpu, 5), 5, context=CallContext(Device(2, 1)))
    assert caught.value.code == "kernel.context"


def test_arrays_of_the_host_are_refused_or_copied(load, flat, fake_gpu):
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    with pytest.raises(ArgumentError, match="'x' is on the device 'cpu'") as caught:
        load(flat(*DOUBLE))(x, y, 5)
    assert caught.value.code == "kernel.device"
    load(flat(*DOUBLE), "host_arrays=copy")(x, y, 5)
    assert np.array_equal(y, 2 * x)


def test_trusted_calls_wait(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    x, y = pair(fake_gpu, 5)
    kernel.run_trusted(x, y, 5)
    assert np.array_equal(y.values(), 2 * np.arange(5))
    with pytest.raises(TypeError, match="takes 3 arguments"):
        kernel.run_trusted(x)


def test_a_failed_bounds_check_is_raised_by_the_next_call(load, flat, fake_gpu):
    kernel = load(flat(*GUARDED))
    x, y = pair(fake_gpu, 4)
    bound = kernel.bind(x, y, 4)
    bound()
    kernel.memory.wait(0)
    with pytest.raises(ArgumentError, match=r"An earlier call of 'f' .* 'X'") as caught:
        bound()
    assert caught.value.code == "kernel.out_of_bounds"
    bound()  # it is raised once
    kernel.memory.wait(0)
    with pytest.raises(ArgumentError, match="An earlier call"):
        kernel.run_trusted(x, y, 4)


def test_trusted_calls_raise_their_own_errors(load, flat, fake_gpu):
    with pytest.raises(ArgumentError, match=r"^The kernel 'f' stopped"):
        load(flat(*GUARDED)).run_trusted(*pair(fake_gpu, 4), 4)


def test_too_little_memory_has_the_bytes(load, flat, fake_gpu):
    kernel = load(flat(*REVERSED))
    x, y = pair(fake_gpu, 1000)
    fake_gpu.free_bytes = 2000
    with pytest.raises(
        MemoryError, match=r"'S' of 'f' needs 4,000 bytes .* 2,000 of 3,000 bytes are free"
    ):
        kernel(x, y, 1000)
    fake_gpu.free_bytes = 1 << 20
    kernel.run_trusted(x, y, 1000)
    assert np.array_equal(y.values(), np.arange(1000)[::-1])


def test_memory_that_is_not_used_is_freed_before_that(load, flat, fake_gpu):
    kernel = load(flat(*REVERSED))
    kernel(*pair(fake_gpu, 5), 5)
    gc.collect()
    fake_gpu.refuse("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY")
    x, y = pair(fake_gpu, 1000)
    kernel.run_trusted(x, y, 1000)
    assert fake_gpu.calls.count("cuMemFree") == 1


def test_after_an_illegal_address_the_context_is_lost(load, flat, fake_gpu):
    kernel, faulty = load(flat(*DOUBLE)), load(flat(*FAULTY))
    x, y = pair(fake_gpu, 4)
    with pytest.raises(
        ArgumentError, match=r"ILLEGAL_ADDRESS.*the context of GPU 0 is lost|lost"
    ) as caught:
        faulty.run_trusted(x, y, 4)
    assert caught.value.code == "cuda.fault"
    calls = len(fake_gpu.calls)
    with pytest.raises(ArgumentError, match=r"lost since an earlier error.*illegal") as caught:
        kernel(x, y, 4)
    assert caught.value.code == "cuda.context"
    assert len(fake_gpu.calls) == calls
    with pytest.raises(ArgumentError, match="lost"):
        load(flat(*DOUBLE))


def test_a_launch_that_fails_leaves_the_kernel_usable(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    x, y = pair(fake_gpu, 4)
    bound = kernel.bind(x, y, 4)
    fake_gpu.refuse("cuLaunchKernel", "CUDA_ERROR_INVALID_VALUE")
    with pytest.raises(
        ArgumentError, match=r"'f' failed: cuLaunchKernel.*invalid argument"
    ) as caught:
        bound()
    assert caught.value.code == "cuda.call"
    bound()
    kernel.memory.wait(0)
    assert y.values().tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("attributes", "registers", "message"),
    [
        ({"MAX_GRID_DIM_X": 2}, 1024, "needs 3 blocks along x, and a grid has at most 2"),
        ({"MAX_BLOCK_DIM_X": 16}, 1024, "needs 32 threads along x, and a block has at most 16"),
        ({"MAX_THREADS_PER_BLOCK": 16}, 1024, "a block of 'Fake GPU' has at most 16"),
        ({}, 16, "the registers of this kernel suffice for 16"),
    ],
)
def test_launches_are_checked_before(load, flat, fake_gpu, attributes, registers, message):
    fake_gpu.attributes |= attributes
    fake_gpu.function_threads = registers
    with pytest.raises(ArgumentError, match=message) as caught:
        load(flat(*DOUBLE))(*pair(fake_gpu, 70), 70)
    assert caught.value.code == "cuda.launch"
    assert fake_gpu.launches == []


def large_lines(elements):
    return (
        'for b in T.thread_binding(n, thread="blockIdx.x"):',
        f'    S = T.alloc_buffer(({elements},), "float32", scope="shared")',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
        f"        S[{elements} - 32 + t] = X[b * 32 + t]",
        '    for u in T.thread_binding(32, thread="threadIdx.x"):',
        f"        Y[b * 32 + u] = S[{elements} - 1 - u]",
    )


def large_module(flat, elements):
    """A kernel that needs more than 48 KiB of shared memory."""
    text = print_module(flat(*large_lines(elements)))
    return parse_module(text.replace("(n,)", "(n * 32,)"))


@pytest.mark.parametrize("stream", [0, STREAM])
def test_more_shared_memory_than_is_static_is_asked_for(load, flat, fake_gpu, stream):
    x, y = pair(fake_gpu, 64)
    kernel = load(large_module(flat, 16384))
    kernel.bind(x, y, 2, context=on(stream))()
    kernel.memory.wait(stream)
    expected = np.arange(64).reshape(2, 32)[:, ::-1]
    assert np.array_equal(y.values().reshape(2, 32), expected)
    assert fake_gpu.calls.count("cuFuncSetAttribute") == 1
    ptx = DeviceCode.decode(kernel.artifact.code).ptx
    assert ".extern .shared .align 16 .b8 gossamer_kernel_shared_65536[];" in ptx


def test_dynamic_shared_memory_is_checked_before_a_launch(load, flat, fake_gpu):
    fake_gpu.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] = 65535
    message = "needs 65536 bytes of shared memory, and a block of 'Fake GPU' has at most 65535"
    with pytest.raises(ArgumentError, match=message) as caught:
        load(large_module(flat, 16384))(*pair(fake_gpu, 64), 2)
    assert caught.value.code == "cuda.launch"
    assert fake_gpu.launches == []
    assert "cuFuncSetAttribute" not in fake_gpu.calls


def test_shared_memory_is_checked_before_a_launch(load, flat, fake_gpu):
    lines = (
        'for b in T.thread_binding(n, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((300,), "float32", scope="shared")',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
        "        S[t] = X[b]",
        "        Y[b * 32 + t] = S[t]",
    )
    fake_gpu.attributes["MAX_SHARED_MEMORY_PER_BLOCK"] = 1000
    with pytest.raises(ArgumentError, match="needs 1200 bytes of shared memory") as caught:
        load(flat(*lines))(*pair(fake_gpu, 1), 1)
    assert caught.value.code == "cuda.launch"


def test_modules_of_kernels_that_are_gone_are_unloaded_at_the_next_load(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    kernel(*pair(fake_gpu, 4), 4)
    del kernel
    gc.collect()
    kept = len(fake_gpu.objects)
    called = calls_of(fake_gpu, lambda: load(flat(*DOUBLE)))
    assert "cuCtxSynchronize" in called
    assert len(fake_gpu.objects) <= kept + 1


def test_arrays_of_the_backend(load, flat, fake_gpu):
    kernel = load(flat(*DOUBLE))
    x = BACKEND.to_device(np.arange(5, dtype=np.float32), device=GPU)
    y = BACKEND.new_array((5,), np.dtype(np.float32), device=GPU)
    assert isinstance(y, DeviceArray)
    kernel(x, y, 5)
    assert np.array_equal(y.to_numpy(), 2 * np.arange(5))
    assert (y.shape, y.device, y.__cuda_array_interface__["typestr"]) == ((5,), 0, "<f4")
    view = view_of(y, name="y")
    assert (view.device, view.address) == (GPU, y.__cuda_array_interface__["data"][0])
    assert not calls_of(fake_gpu, lambda: y.__dlpack__(stream=1))
    called = calls_of(fake_gpu, lambda: y.__dlpack__(stream=STREAM, max_version=(1, 0)))
    assert "cuStreamSynchronize" in called
    empty = BACKEND.new_array((0,), np.dtype(np.float32), device=GPU)
    assert empty.to_numpy().shape == (0,)


@pytest.mark.parametrize("stream", [0, STREAM])
def test_an_array_waits_for_the_streams_of_kernels(load, flat, fake_gpu, stream):
    """The default stream does not wait for those of other packages."""
    x = BACKEND.to_device(np.arange(5, dtype=np.float32), device=GPU)
    y = BACKEND.new_array((5,), np.dtype(np.float32), device=GPU)
    kernel = load(flat(*DOUBLE))
    kernel(x, y, 5, context=on(stream))
    assert np.array_equal(y.to_numpy(), 2 * np.arange(5))
    kernel(x, y, 5, context=on(stream))
    x.copy_from(np.zeros(5, np.float32))
    assert np.array_equal(y.to_numpy(), 2 * np.arange(5))
    kernel(x, y, 5, context=on(stream))
    called = calls_of(fake_gpu, lambda: y.__dlpack__(stream=1))
    assert bool(called & WAITS) == (stream == STREAM)


@pytest.mark.parametrize("stream", [0, STREAM])
def test_memory_of_an_array_is_not_used_again_while_a_kernel_runs(load, flat, fake_gpu, stream):
    x = BACKEND.to_device(np.arange(5, dtype=np.float32), device=GPU)
    _, y = pair(fake_gpu, 5)
    kernel = load(flat(*DOUBLE))
    kernel(x, y, 5, context=on(stream))
    del x
    gc.collect()
    BACKEND.to_device(np.zeros(5, dtype=np.float32), device=GPU)
    kernel.memory.wait(stream)
    assert np.array_equal(y.values(), 2 * np.arange(5))


def test_an_array_that_was_exported_to_a_stream_waits_for_it(load, fake_gpu):
    x = BACKEND.to_device(np.arange(5, dtype=np.float32), device=GPU)
    assert not calls_of(fake_gpu, x.to_numpy) & {"cuCtxSynchronize"}
    x.__dlpack__(stream=STREAM)
    assert "cuCtxSynchronize" not in calls_of(fake_gpu, lambda: x.__dlpack__(stream=STREAM))
    assert "cuCtxSynchronize" in calls_of(fake_gpu, x.to_numpy)


def test_a_plan_leaves_calls_to_bind(load, flat, fake_gpu):
    x, y = pair(fake_gpu, 5)
    plan = load(flat(*DOUBLE)).plan(pointers=(), scalars=("n",), passed=("x", "y"))
    fixed = FixedArguments((), (5,), (), None)
    assert plan.run(fixed, (x,), y) is None
    assert plan.bind(fixed)((x,), y) is None
    assert not fake_gpu.launches
