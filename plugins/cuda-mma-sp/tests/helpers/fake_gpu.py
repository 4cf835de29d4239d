"""A GPU whose kernels the interpreter of PTX runs, behind a libcuda, a PyCUDA and a cuda.bindings of its own.

Work is done when it is waited for. Calls are recorded, and refused where the driver would refuse
them: without a current context, within the capture of a graph, and after a fault.
"""

import ctypes
import enum
import re
import types
from collections import defaultdict

import numpy as np

from gossamer_cuda_mma_sp.driver.device_limits import ATTRIBUTES
from gossamer_cuda_mma_sp.interpreter.grid import run_grid
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, GlobalMemory
from gossamer_cuda_mma_sp.interpreter.program import parse_ptx

TEXTS = {
    "CUDA_SUCCESS": (0, "no error"),
    "CUDA_ERROR_INVALID_VALUE": (1, "invalid argument"),
    "CUDA_ERROR_OUT_OF_MEMORY": (2, "out of memory"),
    "CUDA_ERROR_NO_DEVICE": (100, "no CUDA-capable device is detected"),
    "CUDA_ERROR_INVALID_CONTEXT": (201, "invalid device context"),
    "CUDA_ERROR_INVALID_PTX": (218, "a PTX JIT compilation failed"),
    "CUDA_ERROR_ILLEGAL_ADDRESS": (700, "an illegal memory access was encountered"),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": (
        900,
        "operation not permitted when stream is capturing",
    ),
}
CUresult = enum.IntEnum("CUresult", {name: number for name, (number, _) in TEXTS.items()})
_NAMES = {number: name for name, (number, _) in TEXTS.items()}
_KEPT = {
    number: (ctypes.c_char_p(name.encode()), ctypes.c_char_p(text.encode()))
    for name, (number, text) in TEXTS.items()
}
_ATTRIBUTE_NAMES = {number: name for name, number in ATTRIBUTES.items()}
NEEDS_NO_CONTEXT = {
    "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuCtxPopCurrent",
    "cuGetErrorName", "cuGetErrorString",
}  # fmt: skip
NOT_IN_CAPTURE = {
    "cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuCtxSynchronize", "cuStreamSynchronize",
    "cuModuleLoadData", "cuModuleUnload", "cuEventSynchronize",
}  # fmt: skip
METHODS = {
    "cuDevicePrimaryCtxRetain": "retain_context",
    "cuCtxPushCurrent": "push_context",
    "cuCtxPopCurrent": "pop_context",
    "cuCtxSynchronize": "wait_for_all",
}
"""The methods of a fake that have other names than the functions."""
CONTEXT = 0xC0
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)[^,)]*?(\w+)\s*(?=[,)])")
CTYPES = {"f32": ctypes.c_float, "f64": ctypes.c_double}


class Failure(Exception):
    def __init__(self, name):
        super().__init__(name)
        self.name = name


class FakeGpu:
    """The state of a driver with `count` GPUs."""

    def __init__(self):
        self.count, self.version, self.free_bytes = 1, 13000, 1 << 40
        self.dynamic_bytes = {}
        self.attributes = {
            "MAX_THREADS_PER_BLOCK": 1024, "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024,
            "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": (1 << 31) - 1, "MAX_GRID_DIM_Y": 65535,
            "MAX_GRID_DIM_Z": 65535, "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 99 << 10,
            "MULTIPROCESSOR_COUNT": 132, "L2_CACHE_SIZE": 50 << 20,
            "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0,
        }  # fmt: skip
        self.function_threads = 1024
        self.memory = GlobalMemory()
        self.contexts, self.calls, self.allocated = [], [], set()
        self.pinned, self.objects = {}, {}
        self.work, self.captured = defaultdict(list), {}
        self.refused, self.lost = {}, None
        self.launches = []

    # --- what a test does ---------------------------------------------------------------------

    def refuse(self, function, name):
        """Have the next call of a function fail."""
        self.refused[function] = name

    def begin_capture(self, stream):
        self.captured[stream] = []

    def end_capture(self, stream):
        return self.captured.pop(stream)

    def launch_graph(self, graph, stream):
        self.work[stream] += graph

    def array(self, values):
        """An array of the device, with the interface by which others read it."""
        return FakeArray(self, np.asarray(values))

    # --- the functions ------------------------------------------------------------------------

    def call(self, name, *args):
        """Return what a function stores, as a list; raise Failure."""
        self.calls.append(name)
        if name in self.refused:
            raise Failure(self.refused.pop(name))
        if name not in NEEDS_NO_CONTEXT:
            if not self.contexts:
                raise Failure("CUDA_ERROR_INVALID_CONTEXT")
            if self.lost:
                raise Failure(self.lost)
            if self.captured and name in NOT_IN_CAPTURE:
                raise Failure("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
        result = getattr(self, METHODS.get(name, name))(*args)
        return list(result) if isinstance(result, tuple) else [] if result is None else [result]

    def cuInit(self, flags):
        if not self.count:
            raise Failure("CUDA_ERROR_NO_DEVICE")

    def cuDriverGetVersion(self):
        return self.version

    def cuDeviceGetCount(self):
        return self.count

    def cuDeviceGet(self, number):
        return number

    def cuDeviceGetName(self, device):
        return None

    def cuDeviceGetAttribute(self, number, device):
        return self.attributes[_ATTRIBUTE_NAMES[number]]

    def retain_context(self, device):
        return CONTEXT + device

    def push_context(self, context):
        self.contexts.append(context)

    def pop_context(self):
        return self.contexts.pop()

    def wait_for_all(self):
        for stream in list(self.work):
            self.cuStreamSynchronize(stream)

    def cuMemGetInfo(self):
        return self.free_bytes, self.free_bytes + 1000

    def cuMemAlloc(self, size):
        if not size:
            raise Failure("CUDA_ERROR_INVALID_VALUE")
        if size > self.free_bytes:
            raise Failure("CUDA_ERROR_OUT_OF_MEMORY")
        address = self.memory.allocate(size)
        self.allocated.add(address)
        return address

    def cuMemFree(self, address):
        self.allocated.remove(address)
        self.memory.free(address)

    def cuMemHostAlloc(self, size, flags):
        assert flags == 3, "portable and mapped"
        return self.pin(np.zeros(size, np.uint8))

    def pin(self, array):
        self.pinned[array.ctypes.data] = array
        return array.ctypes.data

    def cuMemcpyHtoDAsync(self, to, source, size, stream):
        data = np.frombuffer(ctypes.string_at(source, size), np.uint8)
        self._put(stream, lambda: self.memory.write(to, data))

    def cuMemcpyDtoHAsync(self, to, source, size, stream):
        def copy():
            data = self.memory.read(source, size)
            ctypes.memmove(to, data.ctypes.data, size)

        self._put(stream, copy)

    def cuMemcpyDtoDAsync(self, to, source, size, stream):
        self._put(stream, lambda: self.memory.write(to, self.memory.read(source, size)))

    def cuMemsetD8Async(self, to, value, size, stream):
        self._put(stream, lambda: self.memory.write(to, np.full(size, value, np.uint8)))

    def cuModuleLoadData(self, image):
        ptx = (
            (image if isinstance(image, bytes) else ctypes.string_at(image)).rstrip(b"\0").decode()
        )
        if ".version" not in ptx:
            raise Failure("CUDA_ERROR_INVALID_PTX")
        return self._new((ptx, parse_ptx(ptx)))

    def cuModuleUnload(self, module):
        del self.objects[module]

    def cuModuleGetFunction(self, module, name):
        name = (name if isinstance(name, bytes) else ctypes.string_at(name)).decode()
        ptx, kernels = self.objects[module]
        head = ptx[ptx.index(f".entry {name}(") :].partition("{")[0] + ")"
        kinds = [kind for kind, _ in PARAMETER.findall(head)]
        assert len(kinds) == len(kernels[name].params)
        return self._new((kernels[name], kinds))

    def cuFuncGetAttribute(self, number, function):
        kernel, _ = self.objects[function]
        static = kernel.shared_bytes - kernel.dynamic_bytes
        return {0: self.function_threads, 1: static}[number]

    def cuFuncSetAttribute(self, function, number, value):
        assert number == 8
        if value > self.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise Failure("CUDA_ERROR_INVALID_VALUE")
        self.dynamic_bytes[function] = value

    def cuLaunchKernel(self, function, *rest):
        *sizes, shared, stream, parameters, extra = rest
        assert extra == 0
        self.require_dynamic(function, shared)
        _, kinds = self.objects[function]
        pointers = (ctypes.c_void_p * len(kinds)).from_address(parameters)
        values = [
            CTYPES.get(kind, ctypes.c_int64).from_address(at).value
            for kind, at in zip(kinds, pointers, strict=True)
        ]
        self.launch(function, sizes[:3], sizes[3:], values, stream)

    def require_dynamic(self, function, size):
        """Fail unless a launch asks for the memory that the kernel has, as it was allowed to."""
        assert (
            size == self.objects[function][0].dynamic_bytes == self.dynamic_bytes.get(function, 0)
        )

    def launch(self, function, grid, block, values, stream):
        kernel, _ = self.objects[function]
        self.launches.append((tuple(grid), tuple(block), stream))
        self._put(stream, lambda: self._run(kernel, grid, block, values))

    def _run(self, kernel, grid, block, values):
        """Run a kernel. Memory of the host is that of the device for its time."""
        mapped = {value: self.pinned[value] for value in values if value in self.pinned}
        there = {at: self.memory.allocate(array.nbytes) for at, array in mapped.items()}
        for at, array in mapped.items():
            self.memory.write(there[at], array)
        values = [there.get(value, value) for value in values]
        run_grid(kernel, self.memory, grid=tuple(grid), block=tuple(block), arguments=values)
        for at, array in mapped.items():
            array.view(np.uint8)[:] = self.memory.read(there[at], array.nbytes)
            self.memory.free(there[at])

    def cuStreamSynchronize(self, stream):
        work, self.work[stream] = self.work[stream], []
        for item in work:
            try:
                item()
            except DeviceFaultError:
                self.lost = "CUDA_ERROR_ILLEGAL_ADDRESS"
                raise Failure(self.lost) from None

    def cuEventCreate(self, flags):
        return self._new("event")

    def cuEventRecord(self, event, stream):
        assert self.objects[event] == "event"

    def cuEventSynchronize(self, event):
        self.wait_for_all()

    def cuEventElapsedTime(self, start, end):
        return 2

    def cuEventDestroy(self, event):
        del self.objects[event]

    def _put(self, stream, item):
        (self.captured[stream] if stream in self.captured else self.work[stream]).append(item)

    def _new(self, value):
        self.objects[len(self.calls) << 8] = value
        return len(self.calls) << 8

    # --- the library --------------------------------------------------------------------------

    def handler(self, name, passed, stored):
        """The function that the library calls, which must not raise."""
        name = name.decode()
        if name in ("cuGetErrorName", "cuGetErrorString"):
            text = _KEPT[passed[0]][name == "cuGetErrorString"]
            stored[0] = ctypes.cast(text, ctypes.c_void_p).value
            return 0
        count = getattr(type(self), METHODS.get(name, name)).__code__.co_argcount - 1
        if name == "cuLaunchKernel":
            count = 11
        try:
            for number, value in enumerate(self.call(name, *passed[:count])):
                stored[number] = value
        except Failure as failure:
            return TEXTS[failure.name][0]
        return 0


class FakeArray:
    """An array of another package on the device."""

    def __init__(self, gpu, values, *, stream=None):
        self.gpu, self.shape, self.dtype = gpu, values.shape, values.dtype
        self.address = gpu.memory.allocate(max(values.nbytes, 1))
        gpu.memory.write(self.address, np.ascontiguousarray(values))
        self.stream = stream

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "stream": self.stream,
        }

    def values(self):
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        return self.gpu.memory.read(self.address, size).view(self.dtype).reshape(self.shape)


def fake_bindings(gpu):
    """The module cuda.bindings.driver for a GPU."""
    module = types.ModuleType("cuda.bindings.driver")
    module.CUresult = CUresult
    module.CUfunction_attribute = enum.IntEnum(
        "CUfunction_attribute", {"THREADS": 0, "SHARED": 1, "DYNAMIC": 8}
    )
    module.CUdevice_attribute = enum.IntEnum(
        "CUdevice_attribute",
        {f"CU_DEVICE_ATTRIBUTE_{name}": number for name, number in ATTRIBUTES.items()},
    )

    def function(name):
        def call(*args):
            try:
                stored = gpu.call(name, *args)
            except Failure as failure:
                return (CUresult[failure.name],)
            return (CUresult.CUDA_SUCCESS, *stored)

        return call

    for name in (*METHODS, *(name for name in vars(FakeGpu) if name.startswith("cu"))):
        setattr(module, name, function(name))
    module.cuDeviceGetName = lambda size, device: (CUresult.CUDA_SUCCESS, b"Fake GPU\0\0")
    module.cuGetErrorName = lambda status: (CUresult.CUDA_SUCCESS, _NAMES[status].encode())
    module.cuGetErrorString = lambda status: (
        CUresult.CUDA_SUCCESS,
        TEXTS[_NAMES[status]][1].encode(),
    )
    return module


def fake_pycuda(gpu):
    """The module pycuda.driver for a GPU."""
    module = types.ModuleType("pycuda.driver")
    module.Error = type("Error", (Exception,), {})
    for name in ("MemoryError", "LogicError", "LaunchError", "RuntimeError"):
        setattr(module, name, type(name, (module.Error,), {}))

    def call(name, *args):
        try:
            stored = gpu.call(name, *args)
        except Failure as failure:
            kind = {
                "CUDA_ERROR_OUT_OF_MEMORY": module.MemoryError,
                "CUDA_ERROR_NO_DEVICE": module.RuntimeError,
            }.get(failure.name, module.LogicError)
            raise kind(f"{name} failed: {TEXTS[failure.name][1]}") from None
        return stored[0] if len(stored) == 1 else tuple(stored) if stored else None

    class Device:
        def __init__(self, number):
            self.handle = call("cuDeviceGet", number)

        @staticmethod
        def count():
            return call("cuDeviceGetCount")

        def name(self):
            return "Fake GPU"

        def get_attribute(self, number):
            return call("cuDeviceGetAttribute", number, self.handle)

        def retain_primary_context(self):
            return Context(call("cuDevicePrimaryCtxRetain", self.handle))

    class Context:
        def __init__(self, handle):
            self.handle = handle

        def push(self):
            call("cuCtxPushCurrent", self.handle)

        @staticmethod
        def pop():
            call("cuCtxPopCurrent")

        @staticmethod
        def synchronize():
            call("cuCtxSynchronize")

    class DeviceAllocation:
        def __init__(self, size):
            self.address = call("cuMemAlloc", size)

        def __int__(self):
            return self.address

        def free(self):
            call("cuMemFree", self.address)

    class Function:
        def __init__(self, handle):
            self.handle = handle

        def get_attribute(self, number):
            return call("cuFuncGetAttribute", number, self.handle)

        def set_attribute(self, number, value):
            call("cuFuncSetAttribute", self.handle, number, value)

        def __call__(self, *args, grid, block, shared):
            assert all(isinstance(each, np.number) for each in args)
            gpu.calls.append("cuLaunchKernel")
            if gpu.lost:
                raise module.LogicError(f"cuLaunchKernel failed: {TEXTS[gpu.lost][1]}")
            if "cuLaunchKernel" in gpu.refused:
                text = TEXTS[gpu.refused.pop("cuLaunchKernel")][1]
                raise module.LaunchError(f"cuLaunchKernel failed: {text}")
            values = [each.item() for each in args]
            gpu.require_dynamic(self.handle, shared)
            gpu.launch(self.handle, grid, block, values, 0)

    class Module:
        def __init__(self, image):
            self.handle = call("cuModuleLoadData", image)

        def get_function(self, name):
            return Function(call("cuModuleGetFunction", self.handle, name.encode()))

        def __del__(self):
            gpu.objects.pop(getattr(self, "handle", None), None)

    def pagelocked_empty(count, dtype, mem_flags=0):
        assert mem_flags == 3
        array = np.zeros(count, dtype)
        gpu.pin(array)
        return array

    def synchronous(name):
        def copy(*args):
            to, source = args
            array, at = (source, 1) if name.endswith("HtoDAsync") else (to, 0)
            args = [to, source]
            args[at] = array.ctypes.data
            call(name, *args, array.nbytes, 0)
            call("cuStreamSynchronize", 0)

        return copy

    module.init = lambda: call("cuInit", 0)
    module.get_driver_version = lambda: call("cuDriverGetVersion")
    module.Device, module.Context = Device, Context
    module.device_attribute = types.SimpleNamespace(**ATTRIBUTES)
    module.function_attribute = types.SimpleNamespace(
        MAX_THREADS_PER_BLOCK=0, SHARED_SIZE_BYTES=1, MAX_DYNAMIC_SHARED_SIZE_BYTES=8
    )
    module.host_alloc_flags = types.SimpleNamespace(PORTABLE=1, DEVICEMAP=2)
    module.mem_get_info = lambda: call("cuMemGetInfo")
    module.mem_alloc, module.pagelocked_empty = DeviceAllocation, pagelocked_empty
    module.module_from_buffer = Module
    module.memcpy_htod = synchronous("cuMemcpyHtoDAsync")
    module.memcpy_dtoh = synchronous("cuMemcpyDtoHAsync")
    module.memcpy_dtod_async = lambda *args: call("cuMemcpyDtoDAsync", *args, 0)
    module.memset_d8_async = lambda at, value, size: call("cuMemsetD8Async", at, value, size, 0)
    return module
