"""Functions of NVIDIA's driver API, called by ctypes or by the package `cuda.bindings`.

Both are called alike: `calls("cuMemAlloc", size)` returns what the function stores, and raises `DriverError`.
Source: `cuda.h` of CUDA 13.0, which also says which symbols end with `_v2`.
"""

from __future__ import annotations

import ctypes
from typing import Any

from gossamer_cuda_mma_sp.driver.driver_error import DriverError

LIBRARY = "libcuda.so.1"

_INT, _UINT, _SIZE = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_ADDRESS, _POINTER = ctypes.c_uint64, ctypes.c_void_p

DRIVER_FUNCTIONS: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "cuInit": ("cuInit", (), (_UINT,)),
    "cuDriverGetVersion": ("cuDriverGetVersion", (_INT,), ()),
    "cuDeviceGetCount": ("cuDeviceGetCount", (_INT,), ()),
    "cuDeviceGet": ("cuDeviceGet", (_INT,), (_INT,)),
    "cuDeviceGetAttribute": ("cuDeviceGetAttribute", (_INT,), (_INT, _INT)),
    "cuDevicePrimaryCtxRetain": ("cuDevicePrimaryCtxRetain", (_POINTER,), (_INT,)),
    "cuCtxPushCurrent": ("cuCtxPushCurrent_v2", (), (_POINTER,)),
    "cuCtxPopCurrent": ("cuCtxPopCurrent_v2", (_POINTER,), ()),
    "cuCtxSynchronize": ("cuCtxSynchronize", (), ()),
    "cuMemGetInfo": ("cuMemGetInfo_v2", (_SIZE, _SIZE), ()),
    "cuMemAlloc": ("cuMemAlloc_v2", (_ADDRESS,), (_SIZE,)),
    "cuMemFree": ("cuMemFree_v2", (), (_ADDRESS,)),
    "cuMemHostAlloc": ("cuMemHostAlloc", (_POINTER,), (_SIZE, _UINT)),
    "cuMemFreeHost": ("cuMemFreeHost", (), (_POINTER,)),
    "cuMemcpyHtoDAsync": ("cuMemcpyHtoDAsync_v2", (), (_ADDRESS, _POINTER, _SIZE, _POINTER)),
    "cuMemcpyDtoHAsync": ("cuMemcpyDtoHAsync_v2", (), (_POINTER, _ADDRESS, _SIZE, _POINTER)),
    "cuMemcpyDtoDAsync": ("cuMemcpyDtoDAsync_v2", (), (_ADDRESS, _ADDRESS, _SIZE, _POINTER)),
    "cuMemsetD8Async": ("cuMemsetD8Async", (), (_ADDRESS, ctypes.c_ubyte, _SIZE, _POINTER)),
    "cuModuleLoadData": ("cuModuleLoadData", (_POINTER,), (_POINTER,)),
    "cuModuleUnload": ("cuModuleUnload", (), (_POINTER,)),
    "cuModuleGetFunction": ("cuModuleGetFunction", (_POINTER,), (_POINTER, ctypes.c_char_p)),
    "cuFuncGetAttribute": ("cuFuncGetAttribute", (_INT,), (_INT, _POINTER)),
    "cuFuncSetAttribute": ("cuFuncSetAttribute", (), (_POINTER, _INT, _INT)),
    "cuLaunchKernel": (
        "cuLaunchKernel",
        (),
        (_POINTER, *7 * (_UINT,), _POINTER, _POINTER, _POINTER),
    ),
    "cuStreamSynchronize": ("cuStreamSynchronize", (), (_POINTER,)),
    "cuEventCreate": ("cuEventCreate", (_POINTER,), (_UINT,)),
    "cuEventRecord": ("cuEventRecord", (), (_POINTER, _POINTER)),
    "cuEventSynchronize": ("cuEventSynchronize", (), (_POINTER,)),
    "cuEventElapsedTime": ("cuEventElapsedTime", (ctypes.c_float,), (_POINTER, _POINTER)),
    "cuEventDestroy": ("cuEventDestroy_v2", (), (_POINTER,)),
}
"""For each function the symbol of the library, the types of what it stores at pointers, which come first, and
those of its other parameters. All return a status."""

_MAX_NAME_BYTES = 256


class CtypesCalls:
    """The functions of the library of NVIDIA's driver. Raises `OSError` if there is none."""

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(library)
        self._functions = {
            name: (self._function(symbol, stored, taken), stored)
            for name, (symbol, stored, taken) in DRIVER_FUNCTIONS.items()
        }

    def __call__(self, name: str, *args: Any) -> Any:
        """Call a function, and return what it stores."""
        function, kinds = self._functions[name]
        stored = [kind() for kind in kinds]
        self._require(name, function(*map(ctypes.byref, stored), *args))
        values = tuple(result.value for result in stored)
        return values if len(values) > 1 else values[0] if values else None

    def device_name(self, device: int) -> str:
        """Return the name of a device."""
        text = ctypes.create_string_buffer(_MAX_NAME_BYTES)
        status = self._library.cuDeviceGetName(text, _MAX_NAME_BYTES, device)
        self._require("cuDeviceGetName", status)
        return text.value.decode()

    def _function(self, symbol: str, stored: tuple[Any, ...], taken: tuple[Any, ...]) -> Any:
        function = getattr(self._library, symbol)
        function.restype = ctypes.c_int
        function.argtypes = (*map(ctypes.POINTER, stored), *taken)
        return function

    def _require(self, name: str, status: int) -> None:
        if status:
            texts = (self._error_text(kind, status) for kind in ("Name", "String"))
            raise DriverError(name, *texts)

    def _error_text(self, kind: str, status: int) -> str:
        text = ctypes.c_char_p()
        getattr(self._library, f"cuGetError{kind}")(status, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {status}"


class BindingsCalls:
    """The functions of the module `cuda.bindings.driver`. They return the status before what they store."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __call__(self, name: str, *args: Any) -> Any:
        """Call a function, and return what it stores."""
        status, *values = getattr(self._module, name)(*args)
        self._require(name, status)
        return tuple(values) if len(values) > 1 else values[0] if values else None

    def device_name(self, device: Any) -> str:
        """Return the name of a device."""
        text: bytes = self("cuDeviceGetName", _MAX_NAME_BYTES, device)
        return text.partition(b"\0")[0].decode()

    def _require(self, name: str, status: Any) -> None:
        if int(status):
            texts = (self._module.cuGetErrorName(status), self._module.cuGetErrorString(status))
            raise DriverError(name, *(text.decode() for _, text in texts))
