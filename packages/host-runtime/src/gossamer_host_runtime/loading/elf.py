"""Load object code of x86-64, AArch64 and RISC-V Linux into memory without LLVM.

The object of a kernel is simple: a few sections, relative relocations between them, and calls of functions
of the C library, such as `calloc`. With this loader, a process whose kernels are all cached need not import
LLVM. Objects that need more (thread-local variables, other relocations) are left to LLVM's linker.

Source: System V ABI, Edition 4.1, chapter 4 (object files).
"""

from __future__ import annotations

import ctypes
import struct
import sys

from gossamer_backend.elf_records import Section
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.aarch64 import AARCH64_RULES
from gossamer_host_runtime.loading.image import image_layout, relocated_image, symbol_offset
from gossamer_host_runtime.loading.mapped_memory import make_executable, map_memory, unmap_memory
from gossamer_host_runtime.loading.object_file import (
    EXECUTABLE,
    IN_MEMORY,
    NO_BITS,
    ObjectFile,
    Symbol,
    malformed_error,
    read_object,
)
from gossamer_host_runtime.loading.relocation_rules import NeedsLinkerError, RelocationRules
from gossamer_host_runtime.loading.riscv64 import RISCV64_RULES
from gossamer_host_runtime.loading.x86_64 import X86_64_RULES

RELOCATION_RULES = {"x86_64": X86_64_RULES, "aarch64": AARCH64_RULES, "riscv64": RISCV64_RULES}
"""The relocations of each architecture, by the first part of LLVM's triple."""


def place_code(code: bytes, symbol: str) -> int | None:
    """Load an object and return the address of a symbol; None if the object or the system needs a full
    linker. Raise `ArgumentError` (`host_runtime.object`) for a malformed object, or one of another
    architecture.

    The memory is never freed: a thread may run the code until the process ends.
    """
    object_file = read_object(code)
    if object_file is None:
        return None
    entry = object_file.find(symbol)
    if entry is not None and not _is_code(entry, object_file.sections):
        raise malformed_error(code, f"'{symbol}' is not in its instructions")
    rules = RELOCATION_RULES.get(architecture())
    if rules is not None and object_file.header.machine != rules.machine:
        raise malformed_error(code, f"it is not code for {architecture()}")
    if entry is None or rules is None or not can_place_code():
        return None
    try:
        return _load_sections(object_file, entry, rules)
    # struct.error: a distance of more than 32 bits
    except (NeedsLinkerError, struct.error, OSError):
        return None


def can_place_code() -> bool:
    """Return whether this process can run code of 64-bit Linux for an architecture in `RELOCATION_RULES`."""
    return sys.platform == "linux" and architecture() in RELOCATION_RULES and sys.maxsize > 2**32


def _is_code(symbol: Symbol, sections: list[Section]) -> bool:
    if not symbol.is_here:
        return False
    section = sections[symbol.section]
    is_stored = section.flags & IN_MEMORY and section.kind != NO_BITS
    return bool(is_stored and section.flags & EXECUTABLE) and symbol.value < section.size


def _load_sections(object_file: ObjectFile, entry: Symbol, rules: RelocationRules) -> int:
    layout = image_layout(object_file, rules)
    base = _reserve_memory(layout.size)
    try:
        # A copy that is relocated and written at once, so that no page is ever writable and executable.
        image = relocated_image(
            object_file, rules, layout=layout, base=base, find_address=_address_in_process
        )
        _fill_memory(base, image)
    except BaseException:
        unmap_memory(base, layout.size)
        raise
    start = symbol_offset(entry, layout)
    return base + start if start is not None else 0


def _address_in_process(name: str) -> int | None:
    """Return the address of a function that a library of this process has; None if there is none."""
    try:
        # By index: the object also has attributes that are not functions of libraries.
        function = ctypes.CDLL(None)[name]
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


# --- memory


def _reserve_memory(size: int) -> int:
    """Return the address of new writable memory."""
    address = map_memory(size)
    if address is None:
        raise NeedsLinkerError
    return address


def _fill_memory(base: int, image: bytearray) -> None:
    """Write the contents into memory, and make it executable and read-only."""
    ctypes.memmove(base, bytes(image), len(image))
    if not make_executable(base, len(image)):
        raise NeedsLinkerError
