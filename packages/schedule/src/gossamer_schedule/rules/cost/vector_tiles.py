"""A cost model of the features of a row as tiles of vectors, which are accumulated in registers."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.machine.hardware_params import HardwareParams

SYMBOLIC_VECTORS = 4
"""Vectors per tile if the number of features is known at run time only. All of them are masked."""

LARGEST_TILE = 256
"""Maximum number of features of a tile: 16 vectors of 512 bits in float32."""

MORE_TILES = 2
"""Maximum number of tiles beyond the fewest, so that fewer lanes of the last one are masked."""

PREFETCHED_VECTORS = 8
"""Maximum number of vectors of a tile if rows are prefetched. With more, the prefetches of one nonzero take
most of the buffers that wait for lines (measured at 16 vectors: 0.75 to 0.9 times as fast)."""

SPARE_REGISTERS = 2
"""Registers that hold neither results of several rows nor the gathered row. (With more vectors, LLVM spills
the results: 1.7 times slower, measured on 3 rows of 9 vectors.)"""


class Tiling(NamedTuple):
    """Features as `tiles` (None: symbolic) of `vectors` of `lanes`; exact if no lane is left over. Vectors
    may be aligned to the gathered rows. `limit` is the maximum number of vectors, with its reason."""

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool
    is_aligned: bool
    limit: str


def tiling_of(
    features: int | None,
    dtype: str,
    hardware: HardwareParams,
    *,
    is_aligned: bool,
    is_prefetched: bool,
    rows: int = 1,
) -> Tiling:
    """Return the fewest tiles that hold all features, all of the same size.

    Aligned vectors are one more than the features fill; a tile may hold one more, too. Tiles of rows that are
    prefetched are smaller, and so are tiles of several rows.

    >>> tiling_of(512, "float32", HardwareParams(), is_aligned=False, is_prefetched=True)[:3]
    (4, 8, 16)
    """
    lanes = hardware.lanes(dtype, holding=features)
    if features is None:
        return Tiling(None, SYMBOLIC_VECTORS, lanes, exact=False, is_aligned=False, limit="")
    vectors = -(-features // lanes) + is_aligned
    most = min(hardware.accumulators, LARGEST_TILE // lanes)
    limit = f"{most} at most, half of the registers and {LARGEST_TILE} features"
    if rows > 1:
        most = max(1, (2 * hardware.accumulators - SPARE_REGISTERS) // (rows + 1))
        limit = (
            f"{most} at most, since registers hold them for {rows} rows and for the row they select"
        )
    elif is_aligned:
        most += 1
        limit += ", and one more because vectors are aligned"
    elif is_prefetched and most > PREFETCHED_VECTORS:
        most = PREFETCHED_VECTORS
        limit = f"{most} at most, because rows are prefetched"
    tiles = _number_of_tiles(vectors, most)
    per_tile = -(-vectors // tiles)
    exact = tiles * per_tile * lanes == features + is_aligned * lanes
    return Tiling(tiles, per_tile, lanes, exact=exact, is_aligned=is_aligned, limit=limit)


def _number_of_tiles(vectors: int, most: int) -> int:
    """Return the number of tiles of at most so many vectors: the fewest of those that leave the fewest lanes
    over, of up to `MORE_TILES` more than are needed."""
    fewest = -(-vectors // most)
    candidates = range(fewest, fewest + MORE_TILES + 1)
    return min(candidates, key=lambda tiles: -vectors % tiles)
