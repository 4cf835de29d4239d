"""A loop as tiles of vectors of lanes: how many there are, and the loops over them."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.support.counted import counted


class VectorTiles(NamedTuple):
    """The split of a loop: in `tiles` (None: as many as needed) of `vectors` of `lanes`. It is exact if no
    lane is left over."""

    tiles: int | None
    vectors: int
    lanes: int
    is_exact: bool

    @property
    def of_one_tile(self) -> VectorTiles:
        """Return the vectors of one tile, for a loop over its elements only."""
        return VectorTiles(1, self.vectors, self.lanes, self.is_exact and self.tiles == 1)

    @property
    def text(self) -> str:
        """Return the tiles in words.

        >>> VectorTiles(8, vectors=4, lanes=16, is_exact=True).text
        '8 tiles of 4 vectors of 16 lanes'
        """
        tiles = "tiles" if self.tiles is None else counted(self.tiles, "tile")
        return f"{tiles} of {counted(self.vectors, 'vector')} of {counted(self.lanes, 'lane')}"

    @property
    def work(self) -> int:
        """Return the vectors of all tiles; an unknown number of tiles counts as 1."""
        return self.vectors * (self.tiles or 1)


class VectorLoops(NamedTuple):
    """The loops over tiles, over the vectors of a tile and over lanes; None for one that does not exist."""

    tile: str | None
    vector: str | None
    lane: str | None


def tiles_holding(count: int | None, *, vectors: int, lanes: int) -> VectorTiles:
    """Return the tiles of so many vectors that hold a number of elements (None: symbolic).

    >>> tiles_holding(40, vectors=2, lanes=16)
    VectorTiles(tiles=2, vectors=2, lanes=16, is_exact=False)
    """
    if count is None:
        return VectorTiles(None, vectors, lanes, is_exact=False)
    tiles = -(-count // (vectors * lanes))
    return VectorTiles(tiles, vectors, lanes, is_exact=tiles * vectors * lanes == count)
