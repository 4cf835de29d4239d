"""The relocations of AArch64.

An address is computed by two instructions, of which one has the distance in pages of 4 KiB, and the other the
place in the page. A call has 26 bits for a distance in instructions; the linker puts a veneer near a call
whose target is further away.

Source: ELF for the Arm 64-bit Architecture (2024Q3), section 5.7; Arm Architecture Reference Manual, C6.2 for
the encodings; Procedure Call Standard, section 6.1.1 (a veneer may change x16).
"""

from __future__ import annotations

import struct

from gossamer_host_runtime.loading.relocation_rules import (
    Fixup,
    NeedsLinkerError,
    RelocationRules,
    Veneers,
    WriteFixup,
    write_address,
    write_after,
    write_distance_32,
    write_distance_64,
    write_instruction_bits,
)

_INSTRUCTION = struct.Struct("<I")
_PAGE_BITS, _CALL_BITS = 12, 26

# ldr x16, the address after the instructions; br x16. Libraries may be further away than `adrp` reaches.
_VENEER = struct.Struct("<IIQ")
_VENEER_INSTRUCTIONS = (0x58000050, 0xD61F0200)


def _write_page(image: bytearray, fixup: Fixup) -> None:
    """Write the distance in pages into an `adrp`, whose two lowest bits are apart from the others."""
    pages = (fixup.value >> _PAGE_BITS) - (fixup.address >> _PAGE_BITS)
    _require_signed(pages, bits=21)
    write_instruction_bits(image, fixup.offset, pages, first=29, bits=2)
    write_instruction_bits(image, fixup.offset, pages >> 2, first=5, bits=19)


def _place_in_page(size: int) -> WriteFixup:
    """Return what writes the place in its page into an instruction that counts in units of `size` bytes."""

    def write(image: bytearray, fixup: Fixup) -> None:
        offset = fixup.value % (1 << _PAGE_BITS)
        if offset % size:
            raise NeedsLinkerError
        write_instruction_bits(image, fixup.offset, offset // size, first=10, bits=12)

    return write


def _write_call(image: bytearray, fixup: Fixup) -> None:
    if fixup.distance % _INSTRUCTION.size:
        raise NeedsLinkerError
    instructions = fixup.distance // _INSTRUCTION.size
    _require_signed(instructions, bits=_CALL_BITS)
    write_instruction_bits(image, fixup.offset, instructions, first=0, bits=_CALL_BITS)


def _require_signed(number: int, *, bits: int) -> None:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise NeedsLinkerError


AARCH64_RULES = RelocationRules(
    machine=183,
    writers={
        257: write_address,  # R_AARCH64_ABS64
        260: write_distance_64,  # R_AARCH64_PREL64
        261: write_distance_32,  # R_AARCH64_PREL32
        275: _write_page,  # R_AARCH64_ADR_PREL_PG_HI21
        277: _place_in_page(1),  # R_AARCH64_ADD_ABS_LO12_NC
        278: _place_in_page(1),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: _write_call,  # R_AARCH64_JUMP26
        283: _write_call,  # R_AARCH64_CALL26
        284: _place_in_page(2),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: _place_in_page(4),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: _place_in_page(8),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: _place_in_page(16),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: _write_page,  # R_AARCH64_ADR_GOT_PAGE
        312: _place_in_page(8),  # R_AARCH64_LD64_GOT_LO12_NC
    },
    slotted=frozenset({311, 312}),
    veneers=Veneers(
        calls=frozenset({282, 283}),
        reach=_INSTRUCTION.size << _CALL_BITS - 1,
        size=_VENEER.size,
        write=write_after(_VENEER, *_VENEER_INSTRUCTIONS),
    ),
)
