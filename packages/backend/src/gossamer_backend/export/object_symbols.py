"""Rename a symbol of an object file, and list its undefined symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from gossamer_backend.elf_records import (
    ELF_SYMBOL,
    FILE_HEADER,
    IDENTITY,
    RELOCATABLE,
    SECTION,
    SYMBOL_TABLE,
    Section,
    header_of,
    sections_of,
)
from gossamer_ir.errors import UnsupportedError


class _SymbolEntry(msgspec.Struct, frozen=True):
    """An entry of the symbol table; `section` is 0 if the symbol is undefined."""

    entry_offset: int
    name: bytes
    section: int


def rename_symbol(code: bytes, old: str, *, new: str) -> bytes:
    """Return the object file with the symbol `old` renamed.

    `UnsupportedError` (`backend.export`) if the bytes are not a relocatable ELF object, or do not define it.
    """
    sections = _sections(code)
    table, names = _symbol_table(code, sections)
    entry_offset = next(
        (
            symbol.entry_offset
            for symbol in _symbols(code, table, names)
            if _is_definition_of(symbol, old)
        ),
        None,
    )
    if entry_offset is None:
        raise _unsupported_error(f"they define no symbol '{old}'")
    texts = code[names.offset : names.offset + names.size]
    moved = bytearray(code)
    moved += texts + new.encode("ascii") + b"\0"
    struct.pack_into("<I", moved, entry_offset, len(texts))
    size = len(moved) - len(code)
    SECTION.pack_into(moved, names.header_offset, *names._replace(offset=len(code), size=size)[1:])
    return bytes(moved)


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """Return the undefined symbols of an object file, sorted.

    `UnsupportedError` (`backend.export`) if the bytes are not a relocatable ELF object.
    """
    table, names = _symbol_table(code, _sections(code))
    undefined = {symbol.name for symbol in _symbols(code, table, names) if not symbol.section}
    return tuple(sorted(name.decode("ascii", "replace") for name in undefined if name))


def _is_definition_of(symbol: _SymbolEntry, name: str) -> bool:
    return symbol.section != 0 and symbol.name == name.encode("ascii")


def _sections(code: bytes) -> list[Section]:
    if len(code) < FILE_HEADER.size or not code.startswith(IDENTITY):
        raise _unsupported_error("its code is not an ELF file for a 64-bit little-endian machine")
    header = header_of(code)
    end = header.sections + SECTION.size * header.section_count
    is_object = header.kind == RELOCATABLE and header.section_size == SECTION.size
    if not is_object or not 0 < header.sections < end <= len(code):
        raise _unsupported_error("its code is not a relocatable ELF object")
    return sections_of(code, header)


def _symbol_table(code: bytes, sections: list[Section]) -> tuple[Section, Section]:
    """Return the symbol table and its string table."""
    table = next((section for section in sections if section.kind == SYMBOL_TABLE), None)
    if table is None or not table.link < len(sections):
        raise _unsupported_error("its code has no symbol table")
    names = sections[table.link]
    if max(table.offset + table.size, names.offset + names.size) > len(code):
        raise _unsupported_error("its code is cut off")
    return table, names


def _symbols(code: bytes, table: Section, names: Section) -> Iterator[_SymbolEntry]:
    texts = code[names.offset : names.offset + names.size]
    for offset in range(
        table.offset, table.offset + table.size - ELF_SYMBOL.size + 1, ELF_SYMBOL.size
    ):
        name, _, _, section, _, _ = ELF_SYMBOL.unpack_from(code, offset)
        yield _SymbolEntry(offset, texts[name : texts.find(b"\0", name)], section)


def _unsupported_error(why: str) -> UnsupportedError:
    return UnsupportedError(
        "backend.export",
        f"Cannot export this kernel: {why}.",
        hint="Export kernels of generic-cpu on Linux, of llvm-sve or of llvm-rvv.",
    )
