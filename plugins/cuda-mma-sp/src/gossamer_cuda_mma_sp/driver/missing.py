"""What this machine lacks to run kernels, found without importing a driver."""

from __future__ import annotations

import ctypes.util
from collections.abc import Callable
from pathlib import Path

import msgspec

DEVICE_FILES = ("/dev/nvidiactl", "/dev/dxg")
"""The files of the system by which processes reach GPUs: on Linux, and on Linux under Windows."""

NO_LOADER = (
    "This version of gossamer-cuda-mma-sp compiles kernels to PTX, and does not load them yet"
)
"""A sentence without its period."""


class System(msgspec.Struct, frozen=True):
    """How this machine is asked: whether a file exists, and the name of a library that the system has."""

    has_file: Callable[[str], bool] = lambda path: Path(path).exists()
    library: Callable[[str], str | None] = ctypes.util.find_library


def missing_parts(system: System) -> tuple[str, ...]:
    """Return what a machine lacks to run kernels, in words.

    >>> missing_parts(System(has_file=lambda path: True, library=lambda name: None))
    ("the library of NVIDIA's driver (libcuda.so.1)",)
    """
    missing = []
    if system.library("cuda") is None:
        missing.append("the library of NVIDIA's driver (libcuda.so.1)")
    if not any(map(system.has_file, DEVICE_FILES)):
        missing.append(f"a GPU ({' or '.join(DEVICE_FILES)})")
    return tuple(missing)


def reason_against_loading(system: System) -> str:
    """Return why no kernel can be loaded on a machine.

    >>> reason_against_loading(System(has_file=lambda path: True, library=lambda name: name))
    'This version of gossamer-cuda-mma-sp compiles kernels to PTX, and does not load them yet.'
    """
    missing = missing_parts(system)
    lacks = f"; this machine also lacks {' and '.join(missing)}" if missing else ""
    return f"{NO_LOADER}{lacks}."
