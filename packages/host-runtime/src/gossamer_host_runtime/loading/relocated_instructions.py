"""The instructions of AArch64 that each kind of relocation changes.

LLVM's linker ends the process if it finds another instruction there, or one whose immediate is not zero.

Source: ELF for the Arm 64-bit Architecture (2024Q3), section 5.7; Arm Architecture Reference Manual, C6.2 and
C7.2 for the encodings.
"""

from __future__ import annotations

INSTRUCTION_KINDS = range(263, 314)
"""The kinds that change an instruction."""

_CALL = (0x7FFFFFFF, 0x14000000)
_ADRP = (0xFFFFFFE0, 0x90000000)
_ENCODINGS = {
    275: _ADRP,
    276: _ADRP,
    277: (0xFFFFFC00, 0x91000000),  # add
    278: (0xFB3FFC00, 0x39000000),  # loads and stores of 1 byte
    282: _CALL,
    283: _CALL,
    284: (0xFB3FFC00, 0x79000000),  # of 2 bytes
    285: (0xFB3FFC00, 0xB9000000),  # of 4
    286: (0xFB3FFC00, 0xF9000000),  # of 8
    299: (0xFFBFFC00, 0x3D800000),  # of 16
    311: _ADRP,
    312: (0xFFFFFC00, 0xF9400000),  # a load of 8
}
"""The bits that tell an instruction with an immediate of zero from others, and their values, by kind."""


def can_be_relocated(instruction: int, kind: int) -> bool:
    """Return whether a kind of relocation changes this instruction.

    >>> bl, ret = 0x94000000, 0xD65F03C0
    >>> can_be_relocated(bl, 283), can_be_relocated(ret, 283)
    (True, False)
    """
    if kind not in _ENCODINGS:
        return False
    mask, value = _ENCODINGS[kind]
    return instruction & mask == value
