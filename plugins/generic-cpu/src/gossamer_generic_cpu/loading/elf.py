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
from typing import NamedTuple

from gossamer_backend.elf_records import (
    IDENTITY,
    RELOCATABLE,
    SECTION,
    SYMBOL,
    SYMBOL_TABLE,
    Section,
    header_of,
    sections_of,
)
from gossamer_generic_cpu.target.architecture import architecture

_RELOCATION = struct.Struct("<QQq")
_MAGIC = IDENTITY + b"\x01"
_X86_64 = 62
_RELOCATIONS, _NO_BITS, _PLAIN_RELOCATIONS = 4, 8, 9
_GROUP, _DYNAMIC_KINDS = 17, frozenset({14, 15, 16})
_IN_MEMORY, _THREAD_LOCAL = 0x2, 0x400
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00
_ABSOLUTE_64, _DISTANCES_32 = 1, frozenset({2, 4})


class _Foreign(Exception):  # noqa: N818
    """The object needs features that this loader does not have."""


def place(code: bytes, symbol: str) -> int | None:
    """Load an object and return the address of a symbol; None if the object or the system needs a full
    linker.

    The memory is never freed: a thread may run the code until the process ends.
    """
    if not is_supported():
        return None
    try:
        return _placed(code, symbol)
    except (_Foreign, struct.error, IndexError, OSError):
        return None


def is_supported() -> bool:
    """Return whether this process can run x86-64 Linux code."""
    return sys.platform == "linux" and architecture() == "x86_64" and sys.maxsize > 2**32


def _placed(code: bytes, symbol: str) -> int:
    sections = _sections(code)
    offsets, size = _layout(sections)
    image = bytearray(size)
    for section, at in zip(sections, offsets, strict=True):
        if at is not None and section.kind != _NO_BITS:
            image[at : at + section.size] = _contents(code, section)
    base = _reserved(size)
    addresses = _addresses(code, sections, offsets, base=base)
    for section in sections:
        at = offsets[section.info] if section.kind == _RELOCATIONS else None
        if at is not None:
            _relocate(image, base, _Relocations(at, _contents(code, section), addresses))
    entry = addresses[_index_of(code, sections, symbol)]
    if entry is None:
        raise _Foreign
    _fill(base, image)
    return entry


def _sections(code: bytes) -> list[Section]:
    header = header_of(code)
    is_object = (header.kind, header.machine) == (RELOCATABLE, _X86_64)
    if not header.identity.startswith(_MAGIC) or not is_object:
        raise _Foreign
    if header.section_size != SECTION.size or not header.section_count:
        raise _Foreign
    found = sections_of(code, header)
    for section in found:
        if section.kind in _DYNAMIC_KINDS | {_GROUP, _PLAIN_RELOCATIONS}:
            raise _Foreign
        if section.flags & _IN_MEMORY and section.flags & _THREAD_LOCAL:
            raise _Foreign
    return found


def _layout(sections: list[Section]) -> tuple[list[int | None], int]:
    """Return the offset of each section, None for those that are not loaded, and the total size."""
    offsets: list[int | None] = []
    end = 0
    for section in sections:
        if not section.flags & _IN_MEMORY:
            offsets.append(None)
            continue
        align = max(section.alignment, 1)
        if align > mmap.PAGESIZE:
            raise _Foreign
        end = -(-end // align) * align
        offsets.append(end)
        end += section.size
    return offsets, end


def _contents(code: bytes, section: Section) -> bytes:
    found = code[section.offset : section.offset + section.size]
    if len(found) != section.size:
        raise _Foreign
    return found


def _symbol_table(sections: list[Section]) -> Section:
    tables = [section for section in sections if section.kind == SYMBOL_TABLE]
    if len(tables) != 1:
        raise _Foreign
    return tables[0]


def _addresses(
    code: bytes, sections: list[Section], offsets: list[int | None], *, base: int
) -> list[int | None]:
    """Return the address of each symbol, None for undefined ones."""
    found: list[int | None] = []
    for _, _, _, section, value, _ in SYMBOL.iter_unpack(_contents(code, _symbol_table(sections))):
        is_here = _UNDEFINED < section < _FIRST_RESERVED
        start = offsets[section] if is_here else None
        found.append(None if start is None else base + start + value)
    return found


def _index_of(code: bytes, sections: list[Section], symbol: str) -> int:
    table = _symbol_table(sections)
    names = _contents(code, sections[table.link])
    wanted = b"\0" + symbol.encode() + b"\0"
    for at, (name, *_) in enumerate(SYMBOL.iter_unpack(_contents(code, table))):
        if names[name - 1 : name + len(wanted) - 1] == wanted:
            return at
    raise _Foreign


class _Relocations(NamedTuple):
    """The entries of a relocation section, the offset of the section that they change, and the addresses of
    symbols."""

    at: int
    entries: bytes
    addresses: list[int | None]


def _relocate(image: bytearray, base: int, found: _Relocations) -> None:
    for offset, info, addend in _RELOCATION.iter_unpack(found.entries):
        address = found.addresses[info >> 32]
        if address is None:
            raise _Foreign
        at, kind = found.at + offset, info & 0xFFFFFFFF
        if kind == _ABSOLUTE_64:
            struct.pack_into("<Q", image, at, address + addend)
        elif kind in _DISTANCES_32:
            struct.pack_into("<i", image, at, address + addend - (base + at))
        else:
            raise _Foreign


# --- memory


def _reserved(size: int) -> int:
    """Return the address of new writable memory."""
    reserve = ctypes.CDLL(None, use_errno=True).mmap
    number, pointer = ctypes.c_int, ctypes.c_void_p
    reserve.argtypes = (pointer, ctypes.c_size_t, number, number, number, ctypes.c_int64)
    reserve.restype = pointer
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = reserve(None, max(size, 1), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address is None or address == pointer(-1).value:
        raise _Foreign
    return int(address)


def _fill(base: int, image: bytearray) -> None:
    """Write the contents into memory, and make it executable and read-only."""
    ctypes.memmove(base, bytes(image), len(image))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, max(len(image), 1), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise _Foreign
