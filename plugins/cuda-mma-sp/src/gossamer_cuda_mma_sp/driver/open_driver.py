"""Opens the driver that a target names, or the first one whose package is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver
from gossamer_cuda_mma_sp.driver.device_limits import ATTRIBUTES
from gossamer_cuda_mma_sp.driver.driver_error import NO_DEVICE, DriverError
from gossamer_cuda_mma_sp.driver.library_calls import LIBRARY, BindingsCalls, CtypesCalls
from gossamer_cuda_mma_sp.driver.library_driver import LibraryDriver
from gossamer_ir.errors import ArgumentError

PACKAGES = {"pycuda": "pycuda", "cuda-bindings": "cuda.bindings"}
"""The package that a driver needs."""

DEVICE_FILES = ("/dev/nvidiactl", "/dev/dxg")
"""The files of the system by which processes reach GPUs: on Linux, and on Linux under Windows."""


def open_driver(name: str | None, number: int) -> CudaDriver:
    """Return a driver for the GPU of a number; without a name the first one whose package is installed.

    `ArgumentError` (`cuda.driver`) says what the machine lacks, `cuda.device` that it has no such GPU.
    """
    opener = _OPENERS[name or _first_installed()]
    try:
        return opener(number)
    except DriverError as error:
        raise _start_error(error) from error


def _first_installed() -> str:
    return next((name for name in PACKAGES if _is_installed(name)), "ctypes")


def _is_installed(name: str) -> bool:
    package = PACKAGES[name]
    parent = package.partition(".")[0]
    # The parent of a package that is looked for is imported.
    return importlib.util.find_spec(parent) is not None and (
        parent == package or importlib.util.find_spec(package) is not None
    )


def _import_pycuda() -> Any:
    from pycuda import driver

    return driver


def _import_bindings() -> Any:
    from cuda.bindings import driver

    return driver


_IMPORTERS = {"pycuda": _import_pycuda, "cuda-bindings": _import_bindings}


def _import(name: str) -> Any:
    """Import the module of a driver's package."""
    if not _is_installed(name):
        raise ArgumentError(
            "cuda.driver",
            f"The driver '{name}' needs the package '{PACKAGES[name]}', which is not installed.",
            hint=f"Install gossamer-cuda-mma-sp[{name}], or give the target driver=ctypes.",
        )
    try:
        return _IMPORTERS[name]()
    except ImportError as error:
        raise ArgumentError(
            "cuda.driver",
            f"The package '{PACKAGES[name]}' cannot be imported: {error}.",
            hint=f"It needs the library of NVIDIA's driver ({LIBRARY}).",
        ) from error


def _library_error(error: Exception) -> ArgumentError:
    return ArgumentError(
        "cuda.driver",
        f"The library of NVIDIA's driver ({LIBRARY}) cannot be loaded: {str(error).removesuffix('.')}.",
        hint="Install the driver of an NVIDIA GPU, or give the target driver=interpreter.",
    )


def _start_error(error: DriverError) -> ArgumentError:
    if error.name != NO_DEVICE and "no CUDA-capable device" not in error.text:
        return ArgumentError("cuda.driver", f"NVIDIA's driver does not start: {error}.")
    absent = not any(Path(name).exists() for name in DEVICE_FILES)
    files = f"; neither {' nor '.join(DEVICE_FILES)} exists" if absent else ""
    return ArgumentError(
        "cuda.driver",
        f"NVIDIA's driver finds no GPU: {error}{files}.",
        hint="Give the target driver=interpreter to run kernels without one.",
    )


def _require_device(number: int, count: int) -> None:
    if number >= count:
        raise ArgumentError(
            "cuda.device",
            f"There is no GPU {number}; this machine has {count}, and their numbers begin with 0.",
            hint="Give the target another device=.",
        )


def _library_driver(
    calls: CtypesCalls | BindingsCalls,
    number: int,
    *,
    name: str,
    device_attribute: Callable[[str], Any],
    function_attribute: Callable[[int], Any],
) -> LibraryDriver:
    calls("cuInit", 0)
    _require_device(number, int(calls("cuDeviceGetCount")))
    return LibraryDriver(
        calls,
        calls("cuDeviceGet", number),
        name=name,
        device_attribute=device_attribute,
        function_attribute=function_attribute,
    )


def _open_ctypes(number: int) -> CudaDriver:
    try:
        calls = CtypesCalls()
    except OSError as error:
        raise _library_error(error) from error
    return _library_driver(
        calls,
        number,
        name="ctypes",
        device_attribute=ATTRIBUTES.__getitem__,
        function_attribute=int,
    )


def _open_bindings(number: int) -> CudaDriver:
    module = _import("cuda-bindings")
    attributes = module.CUdevice_attribute
    try:
        return _library_driver(
            BindingsCalls(module),
            number,
            name="cuda.bindings",
            device_attribute=lambda attribute: getattr(
                attributes, f"CU_DEVICE_ATTRIBUTE_{attribute}"
            ),
            function_attribute=module.CUfunction_attribute,
        )
    except RuntimeError as error:  # it opens the library at the first call
        raise _library_error(error) from error


def _open_pycuda(number: int) -> CudaDriver:
    from gossamer_cuda_mma_sp.driver.pycuda_driver import PyCudaDriver, report_errors

    module = _import("pycuda")
    with report_errors(module):
        module.init()
        _require_device(number, module.Device.count())
        return PyCudaDriver(module, number, for_handles=lambda: _open_ctypes(number))


_OPENERS: dict[str, Callable[[int], CudaDriver]] = {
    "pycuda": _open_pycuda,
    "cuda-bindings": _open_bindings,
    "ctypes": _open_ctypes,
}
