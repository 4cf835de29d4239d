"""The relocations of x86-64.

Source: System V ABI, AMD64 supplement, section 4.4.
"""

from __future__ import annotations

from gossamer_host_runtime.loading.relocation_rules import (
    RelocationRules,
    write_address,
    write_distance_32,
)

X86_64_RULES = RelocationRules(
    machine=62,
    writers={
        1: write_address,  # R_X86_64_64
        2: write_distance_32,  # R_X86_64_PC32
        # PLT32 like PC32: the symbol is in the image, so no procedure linkage table is between.
        4: write_distance_32,
    },
)
