"""The relocations of x86-64.

Source: System V ABI, AMD64 supplement, section 4.4; Intel 64 and IA-32 Architectures Software Developer's
Manual, JMP.
"""

from __future__ import annotations

import struct

from gossamer_host_runtime.loading.relocation_rules import (
    RelocationRules,
    Veneers,
    write_address,
    write_after,
    write_distance_32,
)

_CALL = 4  # R_X86_64_PLT32
# jmp to the address in the 8 bytes after the instruction
_JUMP = struct.Struct("<HiQ")
_JUMP_OPCODE = 0x25FF


X86_64_RULES = RelocationRules(
    machine=62,
    writers={
        1: write_address,  # R_X86_64_64
        2: write_distance_32,  # R_X86_64_PC32
        # PLT32 like PC32: a symbol of the image is called directly, and one of a library by a veneer.
        _CALL: write_distance_32,
    },
    veneers=Veneers(
        calls=frozenset({_CALL}),
        reach=1 << 31,
        size=16,  # the jump, up to a multiple of 8 bytes
        write=write_after(_JUMP, _JUMP_OPCODE, 0),
        addend=-4,
    ),
)
