"""Load object code of x86-64 Linux into memory without LLVM.

The object of a kernel is simple: a few sections, and relative relocations between them. With this loader, a
process whose kernels are all cached need not import LLVM. Objects that need more (symbols of other
libraries, other relocations) are left to LLVM's linker.

Source: System V ABI, Edition 4.1, chapter 4 (object files); AMD64 supplement, section 4.4 (relocations).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys

from gossamer_backend.elf_records import Section
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.mapped_memory import make_executable, map_memory, unmap_memory
from gossamer_host_runtime.loading.object_file import (
    EXECUTABLE,
    IN_MEMORY,
    NO_BITS,
    PLAIN_RELOCATIONS,
    THREAD_LOCAL,
    ObjectFile,
    Relocation,
    Symbol,
    malformed_error,
    read_object,
)

# Machine, section types and relocations of the sources above: 17 is a group of sections, 14 to 16
# are initializers, 1 is R_X86_64_64, 2 and 4 are R_X86_64_PC32 and PLT32.
_X86_64 = 62
_GROUP, _DYNAMIC_KINDS = 17, frozenset({14, 15, 16})
_ABSOLUTE_64, _DISTANCES_32 = 1, frozenset({2, 4})


class _Foreign(Exception):  # noqa: N818
    """The object needs features that this loader does not have."""


def place_code(code: bytes, symbol: str) -> int | None:
    """Load an object and return the address of a symbol; None if the object or the system needs a full
    linker. Raise `ArgumentError` (`host_runtime.object`) for a malformed object.

    The memory is never freed: a thread may run the code until the process ends.
    """
    object_file = read_object(code)
    if object_file is None:
        return None
    entry = object_file.find(symbol)
    if entry is not None and not _is_code(entry, object_file.sections):
        raise malformed_error(code, f"'{symbol}' is not in its instructions")
    if entry is None or not can_place_code():
        return None
    try:
        return _load_sections(object_file, entry)
    except (_Foreign, struct.error, OSError):  # struct.error: a distance of more than 32 bits
        return None


def can_place_code() -> bool:
    """Return whether this process can run x86-64 Linux code."""
    return sys.platform == "linux" and architecture() == "x86_64" and sys.maxsize > 2**32


def _is_code(symbol: Symbol, sections: list[Section]) -> bool:
    if not symbol.is_here:
        return False
    section = sections[symbol.section]
    is_stored = section.flags & IN_MEMORY and section.kind != NO_BITS
    return bool(is_stored and section.flags & EXECUTABLE) and symbol.value < section.size


def _load_sections(object_file: ObjectFile, entry: Symbol) -> int:
    _require_plain(object_file)
    offsets, size = _section_offsets(object_file.sections)
    # A copy that is relocated here and written at once, so that no page is ever writable and executable.
    image = bytearray(size)
    for section, at in zip(object_file.sections, offsets, strict=True):
        if at is not None and section.kind != NO_BITS:
            image[at : at + section.size] = object_file.contents(section)
    symbol_offsets = [_offset_of(symbol, offsets) for symbol in object_file.symbols]
    base = _reserve_memory(size)
    try:
        for target, rows in object_file.relocations:
            start = offsets[target]
            if start is not None:
                for row in rows:
                    _relocate(
                        image, base, row, at=start + row.offset, to=symbol_offsets[row.symbol]
                    )
        _fill_memory(base, image)
    except BaseException:
        unmap_memory(base, size)
        raise
    start = _offset_of(entry, offsets)
    return base + start if start is not None else 0


def _require_plain(object_file: ObjectFile) -> None:
    if object_file.header.machine != _X86_64:
        raise _Foreign
    for section in object_file.sections:
        if section.kind in _DYNAMIC_KINDS | {_GROUP, PLAIN_RELOCATIONS}:
            raise _Foreign
        if section.flags & IN_MEMORY and section.flags & THREAD_LOCAL:
            raise _Foreign


def _section_offsets(sections: list[Section]) -> tuple[list[int | None], int]:
    """Return the offset of each section, None for those that are not loaded, and the total size."""
    offsets: list[int | None] = []
    end = 0
    for section in sections:
        if not section.flags & IN_MEMORY:
            offsets.append(None)
            continue
        align = max(section.alignment, 1)
        # mmap aligns to pages only.
        if align > mmap.PAGESIZE:
            raise _Foreign
        end = -(-end // align) * align
        offsets.append(end)
        end += section.size
    return offsets, end


def _offset_of(symbol: Symbol, offsets: list[int | None]) -> int | None:
    """Return the offset of a symbol in the image, None for one that is not in it."""
    start = offsets[symbol.section] if symbol.is_here else None
    return None if start is None else start + symbol.value


def _relocate(image: bytearray, base: int, row: Relocation, *, at: int, to: int | None) -> None:
    if to is None:
        raise _Foreign
    if row.kind == _ABSOLUTE_64:
        struct.pack_into("<Q", image, at, base + to + row.addend)
    # PLT32 like PC32: the symbol is in this image, so no procedure linkage table is between.
    elif row.kind in _DISTANCES_32:
        struct.pack_into("<i", image, at, to + row.addend - at)
    else:
        raise _Foreign


# --- memory


def _reserve_memory(size: int) -> int:
    """Return the address of new writable memory."""
    address = map_memory(size)
    if address is None:
        raise _Foreign
    return address


def _fill_memory(base: int, image: bytearray) -> None:
    """Write the contents into memory, and make it executable and read-only."""
    ctypes.memmove(base, bytes(image), len(image))
    if not make_executable(base, len(image)):
        raise _Foreign
