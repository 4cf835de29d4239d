"""Checks that a device can launch a grid, before it is asked to."""

from __future__ import annotations

from math import prod

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import KernelFunction
from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_ir.errors import ArgumentError


def require_launchable(
    name: str,
    kernel: KernelFunction,
    *,
    grid: GridShape,
    block: GridShape,
    limits: DeviceLimits,
) -> None:
    """Raise `ArgumentError` (`cuda.launch`) for a grid, block or shared memory that is larger than the limits
    of the device, or a block for whose threads there are not enough registers."""
    _require_extents(name, grid, limits.grid_shape, item="blocks", whole="a grid", tag="blockIdx")
    _require_extents(
        name, block, limits.block_shape, item="threads", whole="a block", tag="threadIdx"
    )
    if prod(block) > min(limits.block_threads, kernel.block_threads):
        why = (
            f"a block of '{limits.name}' has at most {limits.block_threads}"
            if prod(block) > limits.block_threads
            else f"the registers of this kernel suffice for {kernel.block_threads}"
        )
        raise ArgumentError(
            "cuda.launch",
            f"The kernel '{name}' needs {prod(block)} threads in a block, and {why}.",
            hint="Split the loops that are bound to threadIdx.",
        )
    most = limits.launch_memory if kernel.dynamic_bytes else limits.block_memory
    if kernel.shared_bytes + kernel.dynamic_bytes > most:
        raise ArgumentError(
            "cuda.launch",
            f"The kernel '{name}' needs {kernel.shared_bytes + kernel.dynamic_bytes} bytes of shared memory, "
            f"and a block of '{limits.name}' has at most {most}.",
            hint="Make the buffers of the scope 'shared' smaller.",
        )


def _require_extents(
    name: str, shape: GridShape, largest: GridShape, *, item: str, whole: str, tag: str
) -> None:
    for axis, count, most in zip("xyz", shape, largest, strict=True):
        if count > most:
            raise ArgumentError(
                "cuda.launch",
                f"The kernel '{name}' needs {count} {item} along {axis}, and {whole} has at most {most}.",
                hint=f"Bind this loop to {tag}.x, or split it.",
            )
