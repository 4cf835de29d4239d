"""Read an ELF object file, with every offset and index in it checked.

Neither this package's loader nor LLVM's linker checks that a relocation lies inside its section or a symbol
inside its block, and both write where a relocation says. So whatever is malformed is refused before either of
them sees it. Instructions are examined only where a relocation changes one, since LLVM's linker ends the
process if it is not what it expects: who can change others can run code anyway.

Source: System V ABI, Edition 4.1, chapter 4 (object files); AMD64 supplement, section 4.4 (relocations);
RISC-V ABIs Specification (1.0), section 8.4.
"""

from __future__ import annotations

import struct
import sys

import msgspec

from gossamer_backend.elf_records import (
    ELF_SYMBOL,
    IDENTITY,
    RELOCATABLE,
    SECTION,
    SYMBOL_TABLE,
    FileHeader,
    Section,
    header_of,
    sections_of,
)
from gossamer_host_runtime.loading.relocated_instructions import INSTRUCTION_KINDS, can_be_relocated
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount

# `sh_type`, `sh_flags` and special section indices of the ELF specification.
STRING_TABLE, RELOCATIONS, NO_BITS, PLAIN_RELOCATIONS = 3, 4, 8, 9
IN_MEMORY, EXECUTABLE, THREAD_LOCAL = 0x2, 0x4, 0x400
UNDEFINED, FIRST_RESERVED, ABSOLUTE = 0, 0xFF00, 0xFFF1

MAX_ZEROS = 1 << 26
"""The most bytes of memory that an object may take beyond those in its file."""

# The largest page of supported systems (64 KiB on AArch64). The linker would reserve padding for more.
MAX_ALIGNMENT = 1 << 16

_MAGIC = b"\x7fELF"
_VERSION = b"\x01"
# SHT_NULL: linkers skip such a section.
_UNUSED = 0
_KINDS = frozenset({1, 2, 3, 4, 7, 8, 9, 14, 15, 16, 17})
"""The types of sections in a relocatable file: 1 is contents, 7 notes, 14 to 16 initializers, 17 groups."""

_BINDINGS, _SYMBOL_TYPES = frozenset({0, 1, 2}), frozenset({0, 1, 2, 3, 4, 6})
"""Local, global and weak symbols, of all types but common ones (5): LLVM's linker would allocate these."""

_FIRST_SYSTEM_SPECIFIC = 0x60000000
_PLAIN_RELOCATION = struct.Struct("<QQ")
_RELOCATION = struct.Struct("<QQq")
_X86_64, _AARCH64, _RISCV = 62, 183, 243
_WIDE = frozenset(
    {(_X86_64, kind) for kind in (1, 6, 7, 8, 16, 17, 18, 24, 25, 27, 28, 29, 30, 31, 33, 37)}
    | {(_AARCH64, kind) for kind in (257, 260, 1024, 1025, 1026, 1027)}
    | {(_RISCV, kind) for kind in (2, 3, 5, 7, 9, 11, 18, 19, 36, 40)}
)
"""The relocations that change 8 bytes; others change at most 4."""


class Symbol(msgspec.Struct, frozen=True):
    """A row of the symbol table."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_here(self) -> bool:
        """True if it is defined in a section of this object."""
        return 0 < self.section < FIRST_RESERVED


class Relocation(msgspec.Struct, frozen=True):
    """A place in a section, the index of a symbol, what to do, and a number to add (0 if it is in the
    section)."""

    offset: int
    symbol: int
    kind: int
    addend: int


class ObjectFile(msgspec.Struct, frozen=True):
    """The parts of an object. `relocations` are pairs of the index of a section and what changes it."""

    code: bytes
    header: FileHeader
    sections: list[Section]
    symbols: list[Symbol]
    names: bytes
    relocations: list[tuple[int, list[Relocation]]]

    def contents(self, section: Section) -> bytes:
        """Return the bytes of a section; none for one of zeros."""
        size = 0 if section.kind == NO_BITS else section.size
        return self.code[section.offset : section.offset + size]

    def name_of(self, symbol: Symbol) -> str:
        """Return the name of a symbol; "" if it has none."""
        end = self.names.index(b"\0", symbol.name)
        return self.names[symbol.name : end].decode("utf-8", "replace")

    def find(self, symbol: str) -> Symbol | None:
        """Return a symbol by its name, None if there is none."""
        wanted = symbol.encode() + b"\0"
        for row in self.symbols:
            if self.names[row.name : row.name + len(wanted)] == wanted:
                return row
        return None


def read_object(code: bytes) -> ObjectFile | None:
    """Return the parts of a relocatable file of 64-bit little-endian ELF, or None for a file of another
    format. Raise `ArgumentError` (`host_runtime.object`) if it is malformed."""
    if not code.startswith(_MAGIC) or sys.byteorder != "little" or sys.maxsize < 2**32:
        return None
    try:
        return _parse_object(code)
    except (struct.error, _MalformedError) as error:
        reason = "it ends too early" if isinstance(error, struct.error) else str(error)
        raise malformed_error(code, reason) from error


def without_unwind_tables(code: bytes) -> bytes:
    """Return the object with its `.eh_frame` sections, and what relocates them, marked as unused.

    Exceptions never pass through kernels. LLVM's linker reads these tables, and ends the process if one is
    malformed.
    """
    object_file = read_object(code)
    if object_file is None:
        return code
    names = object_file.contents(object_file.sections[object_file.header.section_names])
    dropped = {
        number
        for number, section in enumerate(object_file.sections)
        if names[section.name :].startswith(b".eh_frame\0")
    }
    changed = bytearray(code)
    for number, section in enumerate(object_file.sections):
        is_relocation = section.kind in (RELOCATIONS, PLAIN_RELOCATIONS)
        if number in dropped or (is_relocation and section.info in dropped):
            struct.pack_into("<I", changed, section.header_offset + 4, _UNUSED)
    return bytes(changed)


def malformed_error(code: bytes, reason: str) -> ArgumentError:
    """Return the error for bytes that are not an object that this process can load."""
    return ArgumentError(
        "host_runtime.object",
        f"The data ({amount(len(code), 'byte')}) cannot be loaded as object code: {reason}.",
        hint="Compile the module again.",
    )


class _MalformedError(Exception):
    """The reason why an object is refused."""


def _parse_object(code: bytes) -> ObjectFile:
    header = header_of(code)
    if not code.startswith(IDENTITY + _VERSION) or header.kind != RELOCATABLE:
        raise _MalformedError("it is not a relocatable file of 64-bit little-endian ELF")
    if header.section_size != SECTION.size or not 0 < header.section_count < FIRST_RESERVED:
        raise _MalformedError("it has no table of sections")
    if header.section_names >= header.section_count:
        raise _MalformedError("the names of its sections are missing")
    if header.sections + SECTION.size * header.section_count > len(code):
        raise _MalformedError("its table of sections lies outside the file")
    sections = sections_of(code, header)
    _require_sections(code, header, sections)
    number = _symbol_table(sections)
    table = sections[number]
    names = _string_table(code, sections, table.link)
    rows = code[table.offset : table.offset + table.size]
    symbols = [Symbol(*row) for row in ELF_SYMBOL.iter_unpack(rows)]
    for symbol in symbols:
        _require_symbol(symbol, sections, names)
    relocations = []
    for section in sections:
        if section.kind in (RELOCATIONS, PLAIN_RELOCATIONS):
            entries = list(_relocations(code, section))
            _require_relocations(code, section, entries, sections=sections, header=header)
            if section.link != number or any(row.symbol >= len(symbols) for row in entries):
                raise _MalformedError("a relocation has no symbol")
            # Relocations of debugging data may name sections that are not loaded.
            if sections[section.info].flags & IN_MEMORY:
                for row in entries:
                    _require_in_memory(symbols[row.symbol], sections)
            relocations.append((section.info, entries))
    return ObjectFile(code, header, sections, symbols, names, relocations)


def _require_sections(code: bytes, header: FileHeader, sections: list[Section]) -> None:
    names = _string_table(code, sections, header.section_names)
    # The specification reserves index 0 for "undefined"; a loader may index it unchecked.
    if any(sections[0][1:]):
        raise _MalformedError("its first section is not empty")
    zeros = 0
    for section in sections[1:]:
        is_stored = section.kind != NO_BITS
        if section.kind not in _KINDS and section.kind < _FIRST_SYSTEM_SPECIFIC:
            raise _MalformedError(f"a section has the type {section.kind}")
        if is_stored and section.offset + section.size > len(code):
            raise _MalformedError("a section lies outside the file")
        if section.name >= len(names):
            raise _MalformedError("the name of a section lies outside the table of names")
        # Only a linked file has addresses; LLVM's linker would place the section there.
        if section.address:
            raise _MalformedError("a section has an address")
        if section.alignment.bit_count() != 1:
            raise _MalformedError("the alignment of a section is not a power of two")
        if section.alignment > MAX_ALIGNMENT:
            raise _MalformedError(f"a section is aligned to {section.alignment} bytes")
        # Alignment counts as well: many tiny sections with a large one would reserve gigabytes of padding.
        zeros += section.alignment + (0 if is_stored else section.size)
    if zeros > MAX_ZEROS:
        raise _MalformedError(f"it takes more than {MAX_ZEROS} bytes of zeros")


def _string_table(code: bytes, sections: list[Section], index: int) -> bytes:
    """Return a table of names, each of which ends with a zero."""
    if index >= len(sections) or sections[index].kind != STRING_TABLE:
        raise _MalformedError("a table of names is missing")
    section = sections[index]
    names = code[section.offset : section.offset + section.size]
    if len(names) != section.size or not names.endswith(b"\0"):
        raise _MalformedError("a table of names is cut off")
    return names


def _symbol_table(sections: list[Section]) -> int:
    tables = [number for number, section in enumerate(sections) if section.kind == SYMBOL_TABLE]
    if len(tables) != 1:
        raise _MalformedError(f"it has {len(tables)} symbol tables")
    table = sections[tables[0]]
    if table.entry_size != ELF_SYMBOL.size or table.size % ELF_SYMBOL.size or not table.size:
        raise _MalformedError("its symbol table is cut off")
    if table.info > table.size // ELF_SYMBOL.size:
        raise _MalformedError("its local symbols lie outside the symbol table")
    return tables[0]


def _require_symbol(symbol: Symbol, sections: list[Section], names: bytes) -> None:
    if symbol.name >= len(names):
        raise _MalformedError("the name of a symbol lies outside the table of names")
    if symbol.info >> 4 not in _BINDINGS or symbol.info & 0xF not in _SYMBOL_TYPES:
        raise _MalformedError("a symbol has an unknown type")
    if symbol.section in (UNDEFINED, ABSOLUTE):
        return
    if symbol.section >= len(sections):
        raise _MalformedError("a symbol has no section")
    if symbol.value + symbol.size > sections[symbol.section].size:
        raise _MalformedError("a symbol lies outside its section")


def _require_in_memory(symbol: Symbol, sections: list[Section]) -> None:
    if symbol.is_here and not sections[symbol.section].flags & IN_MEMORY:
        raise _MalformedError("a relocation names a section that is not loaded")


def _relocations(code: bytes, section: Section) -> list[Relocation]:
    layout = _RELOCATION if section.kind == RELOCATIONS else _PLAIN_RELOCATION
    if section.entry_size != layout.size or section.size % layout.size:
        raise _MalformedError("a table of relocations is cut off")
    rows = layout.iter_unpack(code[section.offset : section.offset + section.size])
    return [
        Relocation(offset, info >> 32, info & 0xFFFFFFFF, *(addend or (0,)))
        for offset, info, *addend in rows
    ]


def _require_relocations(
    code: bytes,
    section: Section,
    rows: list[Relocation],
    *,
    sections: list[Section],
    header: FileHeader,
) -> None:
    if not 0 < section.info < len(sections) or sections[section.info].kind == NO_BITS:
        raise _MalformedError("relocations have no section to change")
    size = sections[section.info].size
    for row in rows:
        width = 8 if (header.machine, row.kind) in _WIDE else 4
        if row.offset + width > size:
            raise _MalformedError("a relocation lies outside its section")
        if header.machine == _AARCH64 and row.kind in INSTRUCTION_KINDS:
            _require_instruction(code, sections[section.info], row)


def _require_instruction(code: bytes, section: Section, row: Relocation) -> None:
    if row.offset % 4:
        raise _MalformedError("a relocation of an instruction is not aligned")
    (instruction,) = struct.unpack_from("<I", code, section.offset + row.offset)
    if not can_be_relocated(instruction, row.kind):
        raise _MalformedError("a relocation changes an instruction of another kind")
