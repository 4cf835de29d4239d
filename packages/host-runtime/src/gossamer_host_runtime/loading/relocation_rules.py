"""The changes that relocations of an architecture make to an image of its code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

_INSTRUCTION = struct.Struct("<I")


class NeedsLinkerError(Exception):
    """The object needs features that this loader does not have."""


class Fixup(msgspec.Struct, frozen=True):
    """A place that a relocation changes: its offset in the image, its address, and the value that belongs
    there (the address of a symbol, of its slot or of its veneer, plus the addend)."""

    offset: int
    address: int
    value: int

    @property
    def distance(self) -> int:
        """The bytes from the place to the value."""
        return self.value - self.address


WriteFixup: TypeAlias = Callable[[bytearray, Fixup], None]
"""Changes the image at a place. `NeedsLinkerError` or `struct.error` if the value does not fit."""


class Veneers(msgspec.Struct, frozen=True):
    """Code that continues at any address, for calls whose target is out of reach, as functions of libraries
    are.

    `calls` are the kinds of relocations of calls, `reach` the bytes that a call can span, `size` those of a
    veneer, `addend` that of a call of a symbol, which counts from the end of the instruction.
    """

    calls: frozenset[int]
    reach: int
    size: int
    write: WriteFixup
    addend: int = 0


class RelocationRules(msgspec.Struct, frozen=True):
    """The relocations of an architecture that this loader supports, by their kind.

    `machine` is its number in the header of a file. The value of a kind in `slotted` is the address of a
    slot, which holds the address of the symbol (in linked files, the global offset table). The symbol of a
    kind in `seconds` marks the first of two instructions that compute an address together: value and distance
    are those of the relocation there.
    """

    machine: int
    writers: Mapping[int, WriteFixup]
    slotted: frozenset[int] = frozenset()
    seconds: frozenset[int] = frozenset()
    veneers: Veneers | None = None


def write_address(image: bytearray, fixup: Fixup) -> None:
    """Write the value as a number of 64 bits."""
    struct.pack_into("<Q", image, fixup.offset, fixup.value)


def write_distance_32(image: bytearray, fixup: Fixup) -> None:
    """Write the distance to the value as a number of 32 bits."""
    struct.pack_into("<i", image, fixup.offset, fixup.distance)


def write_distance_64(image: bytearray, fixup: Fixup) -> None:
    """Write the distance to the value as a number of 64 bits."""
    struct.pack_into("<q", image, fixup.offset, fixup.distance)


def write_after(layout: struct.Struct, *instructions: int) -> WriteFixup:
    """Return a function that writes the instructions of a veneer, and the value after them."""

    def write(image: bytearray, fixup: Fixup) -> None:
        layout.pack_into(image, fixup.offset, *instructions, fixup.value)

    return write


def write_instruction_bits(
    image: bytearray, offset: int, number: int, *, first: int, bits: int
) -> None:
    """Put the lowest bits of a number into the instruction of 32 bits at an offset."""
    mask = (1 << bits) - 1 << first
    (instruction,) = _INSTRUCTION.unpack_from(image, offset)
    _INSTRUCTION.pack_into(image, offset, instruction & ~mask | number << first & mask)
