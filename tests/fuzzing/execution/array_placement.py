"""Arrays as arguments of machine code: at any alignment, surrounded by other bytes, sometimes in a form
that kernels reject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

LINE = 64
"""Bytes of a cache line, and the minimum number of other bytes on both sides of an array."""


@dataclass(frozen=True)
class Place:
    """An array starts `shift` bytes after the beginning of a cache line, with `step - 1` other elements
    between two of its elements."""

    shift: int = 0
    step: int = 1


def draw_places(rng: Random, arrays: Mapping[str, np.ndarray]) -> dict[str, Place]:
    """Places that are aligned for the dtype; in some programs one array is not."""
    placed = {
        name: Place(array.itemsize * rng.randrange(LINE // array.itemsize))
        for name, array in arrays.items()
        if rng.random() < 0.5
    }
    if arrays and rng.random() < 0.05:
        placed[rng.choice(list(arrays))] = rng.choice((Place(shift=1), Place(step=2)))
    return placed


class Passed:
    """A copy of an array at a place; the flat `array` is the argument."""

    def __init__(self, array: np.ndarray, place: Place) -> None:
        size = array.nbytes * place.step
        self._memory = np.full(size + 4 * LINE, 0xA5, np.uint8)
        start = LINE + place.shift + -self._memory.ctypes.data % LINE
        self._own = slice(start, start + size)
        self.array = self._memory[self._own].view(array.dtype)[:: place.step]
        self.array[...] = array.ravel()
        self._before = self._memory.copy()

    @property
    def is_usable(self) -> bool:
        """True if kernels accept it."""
        return self.array.flags.c_contiguous and self.array.flags.aligned

    @property
    def is_as_before(self) -> bool:
        """True if no byte of the array or around it changed."""
        return np.array_equal(self._memory, self._before)

    @property
    def has_clean_edges(self) -> bool:
        """True if no byte on either side of the array changed."""
        return all(
            np.array_equal(self._memory[part], self._before[part])
            for part in (slice(self._own.start), slice(self._own.stop, None))
        )
