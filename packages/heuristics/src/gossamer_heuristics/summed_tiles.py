"""Tiles of the features of a product, which are summed in registers for one row or for a group of rows.

The rules for sums of gathered rows and the model of groups ask here, so that the model expects the tiles that
the rules make.
"""

from __future__ import annotations

from gossamer_machine.machine import Machine

MORE_TILES = 2
"""Maximum number of tiles beyond the fewest, so that fewer lanes of the last one are masked."""

SPARE_REGISTERS = 2
"""Registers that hold neither results of several rows nor the gathered row. (With more vectors, LLVM spills
the results: 1.7 times slower, measured on 3 rows of 9 vectors.)"""


def max_group_vectors(rows: int, machine: Machine) -> int:
    """Return the maximum number of vectors of a tile of this many rows, whose results and whose gathered row
    are in registers.

    >>> [max_group_vectors(rows, Machine()) for rows in (2, 3, 4, 6)]
    [10, 7, 6, 4]
    """
    return max(1, (2 * machine.accumulators - SPARE_REGISTERS) // (rows + 1))


def number_of_tiles(vectors: int, most: int) -> int:
    """Return the number of tiles of at most `most` vectors: the fewest of those that leave the fewest lanes
    over, of up to `MORE_TILES` more than are needed.

    >>> [number_of_tiles(vectors, 6) for vectors in (6, 7, 8, 9, 33)]
    [1, 2, 2, 3, 7]
    """
    fewest = -(-vectors // most)
    candidates = range(fewest, fewest + MORE_TILES + 1)
    return min(candidates, key=lambda tiles: -vectors % tiles)
