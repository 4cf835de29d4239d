"""Lay out the sections of an object, and relocate them for an address.

Nothing is put into memory here, so objects of any architecture can be relocated on any machine.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_backend.elf_records import Section
from gossamer_host_runtime.loading.object_file import (
    IN_MEMORY,
    NO_BITS,
    PLAIN_RELOCATIONS,
    THREAD_LOCAL,
    UNDEFINED,
    ObjectFile,
    Relocation,
    Symbol,
)
from gossamer_host_runtime.loading.relocation_rules import (
    Fixup,
    NeedsLinkerError,
    RelocationRules,
    Veneers,
    write_address,
)

# `sh_type` of the ELF specification: 17 is a group of sections, 14 to 16 are initializers.
_UNSUPPORTED_SECTIONS = frozenset({14, 15, 16, 17, PLAIN_RELOCATIONS})
_SLOT_SIZE = 8
"""The bytes of an address. Slots and veneers begin at a multiple of it."""

_Reference: TypeAlias = tuple[int, int]
"""The index of a symbol, and an addend."""
FindAddress: TypeAlias = Callable[[str], int | None]
"""Returns the address of a function of a library by its name; None if there is none."""


class ImageLayout(msgspec.Struct, frozen=True):
    """The offsets in the image of the sections (None for those that are not loaded), of the slots with
    addresses, and of the veneers after the section of the calls; and the size of the image."""

    sections: list[int | None]
    slots: dict[_Reference, int]
    veneers: dict[tuple[int, _Reference], int]
    size: int


def image_layout(object_file: ObjectFile, rules: RelocationRules) -> ImageLayout:
    """Return the layout of an object; raise `NeedsLinkerError` if it has sections that are not supported."""
    _require_supported(object_file, rules)
    needed = _needed_veneers(object_file, rules.veneers)
    size = rules.veneers.size if rules.veneers is not None else 0
    sections: list[int | None] = []
    veneers: dict[tuple[int, _Reference], int] = {}
    end = 0
    for number, section in enumerate(object_file.sections):
        if not section.flags & IN_MEMORY:
            sections.append(None)
            continue
        start = _round_up(end, max(section.alignment, 1))
        sections.append(start)
        offsets, end = _consecutive(needed.get(number, []), start + section.size, size=size)
        veneers |= {(number, reference): offset for reference, offset in offsets.items()}
    slots, end = _consecutive(_references(object_file, rules.slotted), end, size=_SLOT_SIZE)
    return ImageLayout(sections, slots, veneers, end)


def _consecutive(
    references: list[_Reference], end: int, *, size: int
) -> tuple[dict[_Reference, int], int]:
    """Return the offset of this many bytes for each reference, one after the other, and the end of all."""
    if not references:
        return {}, end
    first = _round_up(end, _SLOT_SIZE)
    offsets = {reference: first + size * row for row, reference in enumerate(references)}
    return offsets, first + size * len(references)


class _Image(msgspec.Struct, frozen=True):
    """An image that is being relocated for the address `base`. `addresses` are those of symbols, None for
    symbols that are neither in it nor in a library. `firsts` are the relocations that those of kinds in
    `rules.seconds` may refer to, by section and offset."""

    contents: bytearray
    base: int
    object_file: ObjectFile
    layout: ImageLayout
    rules: RelocationRules
    addresses: list[int | None]
    firsts: dict[tuple[int, int], Relocation]

    def fixup(self, offset: int, value: int) -> Fixup:
        return Fixup(offset, self.base + offset, value)


def relocated_image(
    object_file: ObjectFile,
    rules: RelocationRules,
    *,
    layout: ImageLayout,
    base: int,
    find_address: FindAddress = lambda _name: None,
) -> bytearray:
    """Return the contents of the memory at an address; raise `NeedsLinkerError` or `struct.error` if a
    relocation is not supported. `find_address` finds functions that the object does not have."""
    addresses = [
        find_address(object_file.name_of(symbol))
        if symbol.section == UNDEFINED
        else _address(symbol, layout, base)
        for symbol in object_file.symbols
    ]
    firsts = _firsts(object_file, rules.seconds)
    contents = bytearray(layout.size)
    image = _Image(contents, base, object_file, layout, rules, addresses, firsts)
    for section, start in zip(object_file.sections, layout.sections, strict=True):
        if start is not None and section.kind != NO_BITS:
            image.contents[start : start + section.size] = object_file.contents(section)
    for reference, slot in layout.slots.items():
        write_address(image.contents, image.fixup(slot, _value(image, reference)))
    for number, rows in object_file.relocations:
        if layout.sections[number] is not None:
            for row in rows:
                _relocate(image, number, row)
    return image.contents


def symbol_offset(symbol: Symbol, layout: ImageLayout) -> int | None:
    """Return the offset of a symbol in the image, None for one that is not in it."""
    start = layout.sections[symbol.section] if symbol.is_here else None
    return None if start is None else start + symbol.value


def _require_supported(object_file: ObjectFile, rules: RelocationRules) -> None:
    if object_file.header.machine != rules.machine:
        raise NeedsLinkerError
    for section in object_file.sections:
        if section.kind in _UNSUPPORTED_SECTIONS:
            raise NeedsLinkerError
        # mmap aligns to pages only.
        if section.flags & IN_MEMORY and (
            section.flags & THREAD_LOCAL or section.alignment > mmap.PAGESIZE
        ):
            raise NeedsLinkerError


def _needed_veneers(
    object_file: ObjectFile, veneers: Veneers | None
) -> dict[int, list[_Reference]]:
    """Return what the calls of each section refer to that may be out of reach: functions of libraries, and
    all functions if some call does not reach all sections."""
    if veneers is None:
        return {}
    loaded = [section for section in object_file.sections if section.flags & IN_MEMORY]
    are_near = sum(map(_max_bytes, loaded)) < veneers.reach
    needed: dict[int, dict[_Reference, None]] = {}
    for number, rows in object_file.relocations:
        calls = (
            (row.symbol, row.addend)
            for row in rows
            if row.kind in veneers.calls
            and not (are_near and object_file.symbols[row.symbol].is_here)
        )
        needed.setdefault(number, {}).update(dict.fromkeys(calls))
    return {number: list(references) for number, references in needed.items()}


def _max_bytes(section: Section) -> int:
    return section.size + section.alignment


def _references(object_file: ObjectFile, kinds: frozenset[int]) -> list[_Reference]:
    """Return the references of relocations of some kinds in what is loaded, each once."""
    return list(
        dict.fromkeys(
            (row.symbol, row.addend)
            for number, rows in object_file.relocations
            if object_file.sections[number].flags & IN_MEMORY
            for row in rows
            if row.kind in kinds
        )
    )


def _address(symbol: Symbol, layout: ImageLayout, base: int) -> int | None:
    offset = symbol_offset(symbol, layout)
    return None if offset is None else base + offset


def _value(image: _Image, reference: _Reference) -> int:
    """Return the address that a reference means; raise `NeedsLinkerError` if its symbol has none."""
    symbol, addend = reference
    address = image.addresses[symbol]
    if address is None:
        raise NeedsLinkerError
    return address + addend


def _firsts(object_file: ObjectFile, seconds: frozenset[int]) -> dict[tuple[int, int], Relocation]:
    """Return the relocations that those of kinds in `seconds` may refer to; none if there are no kinds."""
    if not seconds:
        return {}
    return {
        (number, row.offset): row
        for number, rows in object_file.relocations
        for row in rows
        if row.kind not in seconds
    }


def _relocate(image: _Image, number: int, row: Relocation) -> None:
    """Change the image as a relocation of a section says."""
    write = image.rules.writers.get(row.kind)
    if write is None:
        raise NeedsLinkerError
    if row.kind in image.rules.seconds:
        write(image.contents, _fixup_of_second(image, number, row))
    else:
        write(image.contents, _fixup(image, number, row))


def _fixup_of_second(image: _Image, number: int, row: Relocation) -> Fixup:
    """Return the fixup of the first instruction for the place of the second."""
    symbol, start = image.object_file.symbols[row.symbol], image.layout.sections[number]
    first = image.firsts.get((symbol.section, symbol.value + row.addend))
    if first is None or start is None:
        raise NeedsLinkerError
    return replace(_fixup(image, symbol.section, first), offset=start + row.offset)


def _fixup(image: _Image, number: int, row: Relocation) -> Fixup:
    """Return what a relocation of a section writes, and where. A call may go by a veneer, which is written
    here."""
    start = image.layout.sections[number]
    if start is None:
        raise NeedsLinkerError
    reference = row.symbol, row.addend
    fixup = image.fixup(start + row.offset, _value(image, reference))
    if row.kind in image.rules.slotted:
        fixup = replace(fixup, value=image.base + image.layout.slots[reference])
    veneer, veneers = image.layout.veneers.get((number, reference)), image.rules.veneers
    if veneers is not None and veneer is not None and row.kind in veneers.calls:
        veneers.write(image.contents, image.fixup(veneer, fixup.value - veneers.addend))
        fixup = replace(fixup, value=image.base + veneer + veneers.addend)
    return fixup


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
