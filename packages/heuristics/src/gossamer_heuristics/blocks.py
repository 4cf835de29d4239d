"""Products of blocks: tiles that are summed in registers, and the columns from which lanes pay.

The rule for schedules and the model of formats ask here, so that the model expects the tiles that the rule
makes.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_machine.cache_line import LINE_BYTES
from gossamer_machine.machine import IN_FLIGHT, Machine

MIN_LANE_COLUMNS = 3
"""Minimum number of columns of a block for them to be lanes of a product with a vector (measured on an Intel
CPU, against scalar code on blocks: 1.6 to 2.3 times faster at 3 columns; against CSR: 1.35 at 3, where lanes
are masked, 3 at 4)."""

MAX_TILE_VECTORS = 4
"""Maximum number of vectors of a tile. With more, each load of a vector is used by too few rows."""

LOAD_COST, BROADCAST_COST = 6, 1
"""Cost of a vector of the dense operand, which comes from the second-level cache, and of the broadcast of an
element of a block, in multiply-adds. Fitted to measured tiles of blocks of 16. A vector of half a line or
less costs half as much."""


def are_columns_lanes(height: int, width: int, machine: Machine) -> bool:
    """Return whether the columns of a block are lanes of a product with a vector: there are enough of them,
    and the sums of all rows are in registers.

    >>> narrow = Machine(min_vector_bits=256, vector_registers=16)
    >>> [are_columns_lanes(size, size, narrow) for size in (2, 8, 16)]
    [False, True, False]
    """
    return width >= MIN_LANE_COLUMNS and 1 <= height <= machine.accumulators


class BlockTile(NamedTuple):
    """The rows of a tile, and the number of tiles that have all vectors."""

    rows: int
    tiles: int


def max_sums(machine: Machine) -> int:
    """Return the maximum number of registers for the sums of a tile, if the number of vectors is known."""
    return machine.accumulators + machine.accumulators // 2


def fits_registers(rows: int, width: int, *, vectors: int, machine: Machine) -> bool:
    """Return whether registers hold the sums of a tile of `width` of all `vectors`, and the masks of the last
    one. Without mask registers, each vector of it that may be empty takes a register.

    >>> narrow = Machine(min_vector_bits=256, vector_registers=16)
    >>> [fits_registers(4, 3, vectors=vectors, machine=narrow) for vectors in (12, 16)]
    [True, False]
    """
    has_masks = vectors % width and not machine.has_mask_registers
    return rows * width <= max_sums(machine) - (width - 1 if has_masks else 0)


def load_cost(machine: Machine) -> int:
    """Return the cost of a vector of the dense operand, in multiply-adds.

    >>> load_cost(Machine()), load_cost(Machine(min_vector_bits=256))
    (6, 3)
    """
    is_line = machine.is_scalable or machine.min_vector_bits >= LINE_BYTES * 8
    return LOAD_COST if is_line else LOAD_COST // 2


def tile_cost(rows: int, vectors: int, machine: Machine) -> int:
    """Return the cost of a column of a block for a tile of this many rows and vectors, in multiply-adds.

    >>> tile_cost(8, 2, Machine()), tile_cost(4, 4, Machine())
    (36, 44)
    """
    return max(rows * vectors, IN_FLIGHT) + BROADCAST_COST * rows + load_cost(machine) * vectors


def block_tile(height: int, vectors: int, machine: Machine) -> BlockTile:
    """Return the cheapest tile of blocks of this height, for this many vectors of features.

    >>> block_tile(8, 8, Machine()), block_tile(8, 12, Machine()), block_tile(4, 8, Machine())
    (BlockTile(rows=8, tiles=4), BlockTile(rows=8, tiles=4), BlockTile(rows=4, tiles=2))
    >>> block_tile(16, 16, Machine(min_vector_bits=256, vector_registers=16))
    BlockTile(rows=4, tiles=8)
    """
    budget = max_sums(machine)
    sizes = [
        (rows, width)
        for rows in range(1, min(height, budget) + 1)
        if height % rows == 0
        for width in range(1, min(MAX_TILE_VECTORS, vectors) + 1)
        if fits_registers(rows, width, vectors=vectors, machine=machine)
    ]
    rows, width = min(
        sizes,
        key=lambda size: (
            tile_cost(size[0], size[1], machine) * -(-vectors // size[1]) * (height // size[0])
        ),
    )
    return BlockTile(rows, -(-vectors // width))
