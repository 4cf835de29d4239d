"""The relocations of RISC-V, of 64 bits.

An address is computed by two instructions. The first has the upper 20 bits of the distance from itself, and
the second the lower 12, with a sign. The relocation of the second names the first, by a symbol, and not what
the address is of. A call is such a pair as well, with one relocation. Entries of tables of branches are
differences of two symbols, with a relocation for each of them.

Source: RISC-V ABIs Specification (1.0), sections 8.2 and 8.4; The RISC-V Instruction Set Manual, volume I,
sections 2.3 and 2.5.
"""

from __future__ import annotations

import struct

from gossamer_host_runtime.loading.relocation_rules import (
    Fixup,
    NeedsLinkerError,
    RelocationRules,
    Veneers,
    write_address,
    write_after,
    write_distance_32,
    write_instruction_bits,
)

_WORD = struct.Struct("<I")
_LOW_BITS = 12
_LOWEST_OF_UPPER = 1 << _LOW_BITS - 1
"""Added before the upper bits are taken, since the lower ones have a sign."""

# auipc t3; ld t3, 16(t3); jr t3; nop; the address. Linkers' stubs may change t3, too.
_VENEER = struct.Struct("<IIIIQ")
_VENEER_INSTRUCTIONS = (0x00000E17, 0x010E3E03, 0x000E0067, 0x00000013)


def _write_upper(image: bytearray, fixup: Fixup) -> None:
    """Write the upper bits of the distance into an `auipc`."""
    rounded = fixup.distance + _LOWEST_OF_UPPER
    if not -(1 << 31) <= rounded < 1 << 31:
        raise NeedsLinkerError
    write_instruction_bits(image, fixup.offset, rounded >> _LOW_BITS, first=12, bits=20)


def _write_lower(image: bytearray, fixup: Fixup) -> None:
    """Write the lower bits of the distance into an instruction that adds, loads or jumps."""
    write_instruction_bits(image, fixup.offset, fixup.distance, first=20, bits=12)


def _write_lower_of_store(image: bytearray, fixup: Fixup) -> None:
    write_instruction_bits(image, fixup.offset, fixup.distance, first=7, bits=5)
    write_instruction_bits(image, fixup.offset, fixup.distance >> 5, first=25, bits=7)


def _write_call(image: bytearray, fixup: Fixup) -> None:
    _write_upper(image, fixup)
    write_instruction_bits(image, fixup.offset + _WORD.size, fixup.distance, first=20, bits=12)


def _add(image: bytearray, fixup: Fixup) -> None:
    _change_word(image, fixup.offset, fixup.value)


def _subtract(image: bytearray, fixup: Fixup) -> None:
    _change_word(image, fixup.offset, -fixup.value)


def _change_word(image: bytearray, offset: int, difference: int) -> None:
    (word,) = _WORD.unpack_from(image, offset)
    _WORD.pack_into(image, offset, word + difference & 0xFFFFFFFF)


RISCV64_RULES = RelocationRules(
    machine=243,
    writers={
        2: write_address,  # R_RISCV_64
        19: _write_call,  # R_RISCV_CALL_PLT
        20: _write_upper,  # R_RISCV_GOT_HI20
        23: _write_upper,  # R_RISCV_PCREL_HI20
        24: _write_lower,  # R_RISCV_PCREL_LO12_I
        25: _write_lower_of_store,  # R_RISCV_PCREL_LO12_S
        35: _add,  # R_RISCV_ADD32
        39: _subtract,  # R_RISCV_SUB32
        57: write_distance_32,  # R_RISCV_32_PCREL
    },
    slotted=frozenset({20}),
    seconds=frozenset({24, 25}),
    veneers=Veneers(
        calls=frozenset({19}),
        reach=(1 << 31) - _LOWEST_OF_UPPER,
        size=_VENEER.size,
        write=write_after(_VENEER, *_VENEER_INSTRUCTIONS),
    ),
)
