"""The architectures of GPUs that a target may name, and the versions of PTX for each of them.

LLVM ends the process for a pair that it does not know, so no other pair reaches it.
"""

from __future__ import annotations

import msgspec

CUDA_VERSIONS = {
    "7.0": (11, 0),
    "7.1": (11, 1),
    "7.4": (11, 4),
    "7.8": (11, 8),
    "8.0": (12, 0),
    "8.5": (12, 5),
    "8.6": (12, 7),
    "8.7": (12, 8),
    "8.8": (12, 9),
    "9.0": (13, 0),
}
"""The first version of CUDA whose driver takes a version of PTX. Source: the release notes of the PTX ISA."""

PTX_VERSIONS = tuple(CUDA_VERSIONS)
"""The versions of PTX that a target may ask for, oldest first."""

FIRST_WITH_ASYNC_COPIES = 80
"""The number of the first architecture that copies to shared memory asynchronously."""

FIRST_WITH_SPARSE_CORES = 80
"""The number of the first architecture with sparse tensor cores."""

SPARSE_PTX = "8.5"
"""The first version of PTX that has all instructions for sparse tensor cores (`mma.sp::ordered_metadata`), of
CUDA 12.5."""

KIB = 1024

NATIVE_ARCH = "native"
"""The value of the option `arch` for the architecture of the GPU of this machine."""


class GpuArchitecture(msgspec.Struct, frozen=True):
    """An architecture by the name that PTX has for it, and what a kernel may use there.

    `ptx` is the first version of PTX that has it, of `PTX_VERSIONS`. `shared_memory` are the bytes that the
    static shared memory of a block may have, `block_memory` those that a launch may ask for, and
    `multiprocessors` those of the largest GPU of the architecture.

    >>> ARCHITECTURES["sm_90"].ptx, ARCHITECTURES["sm_90"].block_memory // 1024
    ('7.8', 227)
    """

    name: str
    ptx: str
    block_memory: int
    multiprocessors: int
    shared_memory: int = 48 * KIB
    has_warpgroups: bool = False
    """True if four warps multiply matrices together (`wgmma`)."""

    @property
    def number(self) -> int:
        """The number of the architecture.

        >>> ARCHITECTURES["sm_90a"].number
        90
        """
        return int(self.name.removeprefix("sm_").rstrip("a"))

    @property
    def default_ptx(self) -> str:
        """The version of PTX of a target that asks for none: the first one that has the architecture, and all
        instructions for sparse tensor cores if the architecture has such cores.

        >>> ARCHITECTURES["sm_80"].default_ptx, ARCHITECTURES["sm_120"].default_ptx
        ('8.5', '8.7')
        """
        if self.number < FIRST_WITH_SPARSE_CORES:
            return self.ptx
        return max(self.ptx, SPARSE_PTX, key=PTX_VERSIONS.index)

    @property
    def has_async_copies(self) -> bool:
        """True if threads copy to shared memory asynchronously (`cp.async`).

        >>> ARCHITECTURES["sm_75"].has_async_copies, ARCHITECTURES["sm_80"].has_async_copies
        (False, True)
        """
        return self.number >= FIRST_WITH_ASYNC_COPIES

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The capability of the GPUs for which the code is, and of the first ones that run it.

        >>> ARCHITECTURES["sm_103"].compute_capability, ARCHITECTURES["sm_90a"].compute_capability
        ((10, 3), (9, 0))
        """
        return self.number // 10, self.number % 10

    @property
    def is_specific(self) -> bool:
        """True if no other GPUs run the code, not even later ones.

        >>> ARCHITECTURES["sm_90"].is_specific, ARCHITECTURES["sm_90a"].is_specific
        (False, True)
        """
        return self.name.endswith("a")

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of PTX that a target with the architecture may ask for.

        >>> ARCHITECTURES["sm_120"].versions
        ('8.7', '8.8', '9.0')
        """
        return PTX_VERSIONS[PTX_VERSIONS.index(self.ptx) :]


ARCHITECTURES = {
    architecture.name: architecture
    for architecture in (
        GpuArchitecture("sm_70", "7.0", 96 * KIB, 80),
        GpuArchitecture("sm_75", "7.0", 64 * KIB, 72),
        GpuArchitecture("sm_80", "7.0", 163 * KIB, 108),
        GpuArchitecture("sm_86", "7.1", 99 * KIB, 84),
        GpuArchitecture("sm_87", "7.4", 163 * KIB, 16),
        GpuArchitecture("sm_89", "7.8", 99 * KIB, 142),
        GpuArchitecture("sm_90", "7.8", 227 * KIB, 132),
        GpuArchitecture("sm_90a", "8.0", 227 * KIB, 132, has_warpgroups=True),
        GpuArchitecture("sm_100", "8.6", 227 * KIB, 148),
        GpuArchitecture("sm_100a", "8.6", 227 * KIB, 148),
        GpuArchitecture("sm_103", "8.8", 227 * KIB, 160),
        GpuArchitecture("sm_120", "8.7", 99 * KIB, 170),
        GpuArchitecture("sm_120a", "8.7", 99 * KIB, 170),
    )
}
"""The architectures by name. Code for one with an `a` runs on GPUs of this architecture only."""

DEFAULT_ARCHITECTURE = "sm_80"
