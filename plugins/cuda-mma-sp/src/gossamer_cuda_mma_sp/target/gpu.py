"""The GPU of a target, and the machine for which rules write schedules."""

from __future__ import annotations

import msgspec

from gossamer_cuda_mma_sp.target.architectures import (
    ARCHITECTURES,
    DEFAULT_ARCHITECTURE,
    NATIVE_ARCH,
    GpuArchitecture,
)
from gossamer_ir.core.limits import MAX_BLOCK_THREADS, WARP_LANES
from gossamer_ir.interchange.records import Target
from gossamer_machine import Grid, Machine
from gossamer_machine.cpu_options import option_value_error, require_options

DEVICE_KIND = 2
"""The kind of GPUs of NVIDIA, in the numbers of DLPack."""
INTERPRETER = "interpreter"
DRIVERS = ("pycuda", "cuda-bindings", "ctypes", INTERPRETER)
"""The drivers that a target may name. Without one, the first whose package is installed loads kernels."""
HOST_ARRAYS = ("refuse", "copy")
"""The option for arrays of the host: a kernel refuses them, or copies them to the GPU and back."""

LINE_INFO = ("no", "yes")
"""The option for debugging: PTX names the lines of the printed kernels."""

_ERRORS = "cuda"
"""The first part of the codes of errors."""


class Gpu(msgspec.Struct, frozen=True):
    """A GPU: its architecture, the version of PTX for it, the number of its multiprocessors, the driver that
    runs kernels, if the target names one, its number, whether kernels copy arrays of the host to it, and
    whether their PTX names the lines of the printed program.

    >>> gpu = gpu_of(Target.parse("cuda-mma-sp:arch=sm_90,ptx=8.5"))
    >>> gpu.architecture.name, gpu.ptx, gpu.multiprocessors, gpu.llvm_features
    ('sm_90', '8.5', 132, '+ptx85')
    """

    architecture: GpuArchitecture
    ptx: str
    multiprocessors: int
    driver: str | None = None
    number: int = 0
    copies: bool = False
    has_line_info: bool = False

    @property
    def is_interpreted(self) -> bool:
        """True if no GPU runs the kernels."""
        return self.driver == INTERPRETER

    @property
    def llvm_features(self) -> str:
        """The version of PTX as LLVM takes it."""
        return f"+ptx{self.ptx.replace('.', '')}"


def gpu_of(target: Target) -> Gpu:
    """Return the GPU of a target; raise `ArgumentError` (`cuda.option`, `cuda.option_value`) if an option or
    its value is unknown."""
    names = ("arch", "ptx", "multiprocessors", "driver", "device", "host_arrays", "lineinfo")
    require_options(target, names=names, model={}, errors=_ERRORS)
    architecture = ARCHITECTURES.get(target.option("arch", DEFAULT_ARCHITECTURE))
    if architecture is None:
        expected = f"{NATIVE_ARCH}, or one of {', '.join(ARCHITECTURES)}"
        raise option_value_error(target, "arch", expected=expected, errors=_ERRORS)
    ptx = target.option("ptx", architecture.default_ptx)
    if ptx not in architecture.versions:
        versions = ", ".join(architecture.versions)
        expected = f"a version of PTX that has {architecture.name}: one of {versions}"
        raise option_value_error(target, "ptx", expected=expected, errors=_ERRORS)
    driver = target.option("driver") or None
    _require_one_of(target, "driver", driver, (None, *DRIVERS))
    host_arrays = target.option("host_arrays", HOST_ARRAYS[0])
    _require_one_of(target, "host_arrays", host_arrays, HOST_ARRAYS)
    line_info = target.option("lineinfo", LINE_INFO[0])
    _require_one_of(target, "lineinfo", line_info, LINE_INFO)
    return Gpu(
        architecture,
        ptx,
        _number(target, "multiprocessors", architecture.multiprocessors, least=1),
        driver,
        _number(target, "device", 0, least=0),
        host_arrays == "copy" or driver == INTERPRETER,
        line_info == "yes",
    )


def _require_one_of(
    target: Target, option: str, value: str | None, choices: tuple[str | None, ...]
) -> None:
    if value not in choices:
        expected = f"one of {', '.join(filter(None, choices))}"
        raise option_value_error(target, option, expected=expected, errors=_ERRORS)


def _number(target: Target, option: str, default: int, *, least: int) -> int:
    text = target.option(option, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and int(text) >= least):
        expected = f"a number from {least} to 9999"
        raise option_value_error(target, option, expected=expected, errors=_ERRORS)
    return int(text)


def explicit_gpu_target(target: Target) -> str:
    """Return the target with all options.

    >>> explicit_gpu_target(Target.parse("cuda-mma-sp:arch=sm_86"))
    'cuda-mma-sp:arch=sm_86,ptx=8.5,multiprocessors=84'
    """
    gpu = gpu_of(target)
    options = {
        "arch": gpu.architecture.name,
        "ptx": gpu.ptx,
        "multiprocessors": str(gpu.multiprocessors),
    }
    if gpu.driver:
        options["driver"] = gpu.driver
    if gpu.number:
        options["device"] = str(gpu.number)
    if gpu.copies and not gpu.is_interpreted:
        options["host_arrays"] = "copy"
    if gpu.has_line_info:
        options["lineinfo"] = "yes"
    return Target(target.backend, tuple(options.items())).text


def machine_of_gpu(target: Target) -> Machine:
    """Return the machine of a target: it runs grids of threads, and a thread has no vector registers.

    >>> machine = machine_of_gpu(Target.parse("cuda-mma-sp:arch=sm_90"))
    >>> machine.vector_registers, machine.grid.warp, machine.grid.multiprocessors
    (0, 32, 132)
    """
    gpu = gpu_of(target)
    grid = Grid(
        warp=WARP_LANES,
        block_threads=MAX_BLOCK_THREADS,
        shared_memory=gpu.architecture.shared_memory,
        multiprocessors=gpu.multiprocessors,
    )
    return Machine(
        min_vector_bits=128,
        vector_registers=0,
        cores=gpu.multiprocessors,
        fixed_vscale=None,
        grid=grid,
    )
