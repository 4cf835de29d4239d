"""The N:M patterns of sparse tensor cores, and their metadata of four bits a group."""

from __future__ import annotations

import msgspec
import numpy as np

from gossamer_support.arrays import Array

NIBBLE_BITS = 4
"""Bits of metadata of one group."""
ORDERED_NIBBLES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
"""The nibbles whose index in the high bits is greater than the one in the low bits. All other nibbles are
undefined behavior (PTX ISA 9.0, "Warp-level matrix multiply-accumulate with sparse matrix A")."""


class NMPattern(msgspec.Struct, frozen=True):
    """A pattern of N:M sparsity: of the units of each group of consecutive columns, how many are kept.

    A unit is one element, or a pair of neighboring elements for the pattern 4:8.
    """

    name: str
    units: int
    """Units of a group."""
    unit_columns: int
    """Elements of a unit."""
    nibbles: tuple[int, ...]
    """The metadata of each set of units that are not zero, bit u of the set for unit u; 0 if they are too
    many. Slots without a unit that is not zero hold the first units that are zero."""

    @property
    def group(self) -> int:
        """The columns of a group."""
        return self.units * self.unit_columns

    @property
    def slots(self) -> int:
        """The units of a group that are stored."""
        return self.units // 2

    @property
    def legal(self) -> tuple[int, ...]:
        """The nibbles that may occur."""
        return tuple(sorted({*self.nibbles} - {0}))

    def slot_indices(self, nibbles: Array) -> Array:
        """Return the unit of each slot, an array of uint8 with one more dimension than `nibbles`.

        >>> TWO_OF_FOUR.slot_indices(np.array([0b1101])), ONE_OF_TWO.slot_indices(np.array([0b1110]))
        (array([[1, 3]], dtype=uint8), array([[1]], dtype=uint8))
        """
        return np.take(self._units_of_nibbles(), nibbles, axis=0)

    def _units_of_nibbles(self) -> Array:
        pairs = [(nibble & 3, nibble >> 2) for nibble in range(16)]
        if self.slots == 1:
            # The nibble names two halves of an element of 32 bits, as if they were elements of 16 bits.
            return np.array([[low >> 1] for low, _ in pairs], np.uint8)
        return np.array(pairs, np.uint8)


def _pairs_kept() -> tuple[int, ...]:
    """Return the nibbles of the sets of two of four units."""
    nibbles = []
    for units in range(16):
        kept = [unit for unit in range(4) if units >> unit & 1]
        fillers = [unit for unit in range(4) if not units >> unit & 1]
        low, high = sorted([*kept, *fillers][:2])
        nibbles.append(low | high << 2 if len(kept) <= 2 else 0)
    return tuple(nibbles)


TWO_OF_FOUR = NMPattern("2:4", 4, 1, _pairs_kept())
ONE_OF_TWO = NMPattern("1:2", 2, 1, (0b0100, 0b0100, 0b1110, 0))
FOUR_OF_EIGHT = NMPattern("4:8", 4, 2, _pairs_kept())
