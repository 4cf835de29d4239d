"""Checks that a GPU and its driver take the code of a target."""

from __future__ import annotations

from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_cuda_mma_sp.target.architectures import CUDA_VERSIONS, PTX_VERSIONS
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.errors import ArgumentError


def require_suitable(gpu: Gpu, limits: DeviceLimits) -> None:
    """Raise `ArgumentError`: `cuda.device` if the architecture of the target is not that of the GPU or an
    earlier one, `cuda.driver` if the driver is too old for the version of PTX."""
    wanted, present = gpu.architecture.compute_capability, limits.compute_capability
    if present < wanted or (gpu.architecture.is_specific and present != wanted):
        later = "" if gpu.architecture.is_specific else " and later ones"
        raise ArgumentError(
            "cuda.device",
            f"Code for {gpu.architecture.name} runs on GPUs of compute capability {_text(wanted)}{later}, "
            f"and GPU {gpu.number} ('{limits.name}') has {_text(present)}.",
            hint=f"Give the target arch=sm_{present[0]}{present[1]}, or another device=.",
        )
    major, minor = CUDA_VERSIONS[gpu.ptx]
    if limits.driver_version < 1000 * major + 10 * minor:
        newest = [
            version
            for version in PTX_VERSIONS
            if limits.driver_version
            >= 1000 * CUDA_VERSIONS[version][0] + 10 * CUDA_VERSIONS[version][1]
        ]
        hint = f", or give the target ptx={newest[-1]}" if newest else ""
        raise ArgumentError(
            "cuda.driver",
            f"PTX {gpu.ptx} needs the driver of CUDA {major}.{minor}, and that of this machine is of CUDA "
            f"{limits.cuda_version}.",
            hint=f"Install a later driver{hint}.",
        )


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
