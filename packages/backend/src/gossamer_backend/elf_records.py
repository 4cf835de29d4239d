"""The records of an object file in ELF, for 64-bit little-endian machines.

Layout: Tool Interface Standard, Executable and Linking Format, version 1.2, with the 64-bit fields
of the System V ABI for x86-64.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

IDENTITY = b"\x7fELF\x02\x01"
"""The magic, 64 bits, little-endian."""

RELOCATABLE, SYMBOL_TABLE = 1, 2
"""The type of a relocatable object file, and that of a section that holds a symbol table."""

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
ELF_SYMBOL = struct.Struct("<IBBHQQ")


class FileHeader(msgspec.Struct, frozen=True):
    """The header of a file; `sections` is the offset of the section header table."""

    identity: bytes
    kind: int
    machine: int
    version: int
    entry: int
    segments: int
    sections: int
    flags: int
    size: int
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    section_names: int


class Section(NamedTuple):
    """A section header, and its offset in the file."""

    header_offset: int
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def header_of(code: bytes) -> FileHeader:
    """Return the header of a file; raise `struct.error` if it is too short.

    >>> header_of(bytes(FILE_HEADER.size)).section_count
    0
    """
    return FileHeader(*FILE_HEADER.unpack_from(code))


def sections_of(code: bytes, header: FileHeader) -> list[Section]:
    """Return the section header table; raise `struct.error` if it is cut off."""
    offsets = (header.sections + SECTION.size * row for row in range(header.section_count))
    return [
        Section(header_offset, *SECTION.unpack_from(code, header_offset))
        for header_offset in offsets
    ]
