"""The properties of a GPU, and the limits of launches on it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer_cuda_mma_sp.device_code import GridShape

ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 1,
    "MAX_BLOCK_DIM_X": 2,
    "MAX_BLOCK_DIM_Y": 3,
    "MAX_BLOCK_DIM_Z": 4,
    "MAX_GRID_DIM_X": 5,
    "MAX_GRID_DIM_Y": 6,
    "MAX_GRID_DIM_Z": 7,
    "MAX_SHARED_MEMORY_PER_BLOCK": 8,
    "MULTIPROCESSOR_COUNT": 16,
    "L2_CACHE_SIZE": 38,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
}
"""The attributes of devices (`CUdevice_attribute`) that are read, with their numbers in `cuda.h`."""


class DeviceLimits(msgspec.Struct, frozen=True):
    """A GPU: its name and compute capability, the version of the driver in the form of `cuDriverGetVersion`,
    its multiprocessors, the bytes of its second-level cache, and the most that a launch may ask for.
    `block_memory` are bytes of static shared memory, `launch_memory` those of static and dynamic memory."""

    name: str
    compute_capability: tuple[int, int]
    driver_version: int
    multiprocessors: int
    cache_bytes: int
    block_threads: int
    block_memory: int
    launch_memory: int
    block_shape: GridShape
    grid_shape: GridShape

    @property
    def cuda_version(self) -> str:
        """The version of CUDA that the driver has.

        >>> from msgspec.structs import replace
        >>> replace(INTERPRETED, driver_version=12080).cuda_version
        '12.8'
        """
        return f"{self.driver_version // 1000}.{self.driver_version % 1000 // 10}"


INTERPRETED = DeviceLimits(
    name="interpreter",
    compute_capability=(12, 0),
    driver_version=13000,
    multiprocessors=1,
    cache_bytes=0,
    block_threads=1024,
    block_memory=48 << 10,
    launch_memory=227 << 10,
    block_shape=(1024, 1024, 64),
    grid_shape=((1 << 31) - 1, 65535, 65535),
)
"""The limits that all GPUs since sm_70 have, for the interpreter of PTX; of shared memory, the most that some
have."""


def device_limits(
    attribute: Callable[[str], int], *, name: str, driver_version: int
) -> DeviceLimits:
    """Return the limits of a GPU from a function that reads one of the `ATTRIBUTES`."""

    def along(kind: str) -> GridShape:
        x, y, z = (attribute(f"MAX_{kind}_DIM_{axis}") for axis in "XYZ")
        return x, y, z

    return DeviceLimits(
        name=name,
        compute_capability=(
            attribute("COMPUTE_CAPABILITY_MAJOR"),
            attribute("COMPUTE_CAPABILITY_MINOR"),
        ),
        driver_version=driver_version,
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        cache_bytes=attribute("L2_CACHE_SIZE"),
        block_threads=attribute("MAX_THREADS_PER_BLOCK"),
        block_memory=attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
        launch_memory=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        block_shape=along("BLOCK"),
        grid_shape=along("GRID"),
    )
