"""The architecture of the GPU of this machine, for targets that leave it to the driver (`arch=native`)."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_cuda_mma_sp.target.architectures import (
    ARCHITECTURES,
    CUDA_VERSIONS,
    NATIVE_ARCH,
    GpuArchitecture,
)
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


def with_native_architecture(target: Target) -> Target:
    """Return a target with `arch=native` as that of the GPU of this machine: its architecture with all of its
    instructions, its multiprocessors, and a version of PTX that its driver takes. Options that the target
    has are kept, and so is any other target.

    Raises `ArgumentError` (`cuda.native`) without a GPU, with the interpreter, or for a GPU that is older
    than all architectures.

    >>> with_native_architecture(Target.parse("cuda-mma-sp:arch=sm_90")).text
    'cuda-mma-sp:arch=sm_90'
    """
    if target.option("arch") != NATIVE_ARCH:
        return target
    # The other options are checked before a driver is opened.
    gpu = gpu_of(_with_options(target, arch=next(iter(ARCHITECTURES)), ptx=""))
    if gpu.is_interpreted:
        raise _native_error("the interpreter of PTX runs kernels for any.")
    try:
        limits = gpu_device(gpu.driver, gpu.number).limits
    except ArgumentError as error:
        raise _native_error(error.diagnostics[0].message) from error
    architecture = architecture_of_device(limits)
    ptx = target.option("ptx") or _version_for(architecture, limits)
    multiprocessors = target.option("multiprocessors") or str(limits.multiprocessors)
    return _with_options(target, arch=architecture.name, ptx=ptx, multiprocessors=multiprocessors)


def architecture_of_device(limits: DeviceLimits) -> GpuArchitecture:
    """Return the architecture with all instructions of a GPU, or the last one before it.

    >>> from gossamer_cuda_mma_sp.driver.device_limits import INTERPRETED
    >>> [architecture_of_device(replace(INTERPRETED, compute_capability=at)).name for at in ((8, 6), (9, 0))]
    ['sm_86', 'sm_90a']
    """
    present = limits.compute_capability
    usable = [
        architecture
        for architecture in ARCHITECTURES.values()
        if architecture.compute_capability == present
        or (architecture.compute_capability < present and not architecture.is_specific)
    ]
    if not usable:
        major, minor = present
        raise _native_error(f"GPU '{limits.name}' has the compute capability {major}.{minor}.")
    return max(
        usable, key=lambda architecture: (architecture.compute_capability, architecture.is_specific)
    )


def _version_for(architecture: GpuArchitecture, limits: DeviceLimits) -> str:
    """Return the default version of PTX, or the last one before it that the driver takes."""
    earlier = architecture.versions[: architecture.versions.index(architecture.default_ptx) + 1]
    taken = [
        version
        for version in earlier
        if limits.driver_version
        >= 1000 * CUDA_VERSIONS[version][0] + 10 * CUDA_VERSIONS[version][1]
    ]
    # A driver that takes none is refused with what it needs.
    return taken[-1] if taken else architecture.default_ptx


def _with_options(target: Target, **options: str) -> Target:
    """Return a target with other values of options; an empty one is left out."""
    changed = {**dict(target.options), **options}
    return replace(target, options=tuple((name, value) for name, value in changed.items() if value))


def _native_error(reason: str) -> ArgumentError:
    return ArgumentError(
        "cuda.native",
        f"arch=native is the architecture of the GPU of this machine, which is unknown: {reason}",
        hint=f"Name one: arch= with one of {', '.join(ARCHITECTURES)}.",
    )
