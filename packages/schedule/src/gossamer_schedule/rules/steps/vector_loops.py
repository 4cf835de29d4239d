"""A loop as tiles of vectors of lanes: how many there are, and the loops over them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_support.message_texts import amount


class VectorTiles(msgspec.Struct, frozen=True):
    """The split of a loop: in `tiles` (None: as many as needed) of `vectors` of `lanes`. It is exact if no
    lane is left over. Scalable vectors have `lanes` for each unit of vscale."""

    tiles: int | None
    vectors: int
    lanes: int
    is_exact: bool
    is_scalable: bool = False

    @property
    def lane_factor(self) -> int | str:
        """The lanes as a factor of `split`."""
        return f"{self.lanes} * T.vscale()" if self.is_scalable else self.lanes

    @property
    def tile_factor(self) -> int | str:
        """The lanes of a tile as a factor of `split`.

        >>> VectorTiles(None, 8, 4, is_exact=True, is_scalable=True).tile_factor
        '32 * T.vscale()'
        """
        return replace(self, lanes=self.vectors * self.lanes).lane_factor

    @property
    def single_tile(self) -> VectorTiles:
        """The vectors of one tile, for a loop over its elements only."""
        return replace(self, tiles=1, is_exact=self.is_exact and self.tiles == 1)

    @property
    def text(self) -> str:
        """The tiles in words.

        >>> VectorTiles(8, vectors=4, lanes=16, is_exact=True).text
        '8 tiles of 4 vectors of 16 lanes'
        """
        tiles = "tiles" if self.tiles is None else amount(self.tiles, "tile")
        return f"{tiles} of {amount(self.vectors, 'vector')} of {lanes_in_words(self.lane_factor)}"

    @property
    def work(self) -> int:
        """The vectors of all tiles; an unknown number of tiles counts as 1."""
        return self.vectors * (self.tiles or 1)


def lanes_in_words(lanes: int | str) -> str:
    """Return a number of lanes, or their multiple of vscale, in words.

    >>> lanes_in_words(1), lanes_in_words("4 * T.vscale()")
    ('1 lane', '4 * T.vscale() lanes')
    """
    return f"{lanes} lanes" if isinstance(lanes, str) else amount(lanes, "lane")


class VectorLoops(msgspec.Struct, frozen=True):
    """The loops over tiles, over the vectors of a tile and over lanes; None for one that does not exist."""

    tile: str | None
    vector: str | None
    lane: str | None


def tiles_holding(count: int | None, *, vectors: int, lanes: int) -> VectorTiles:
    """Return the tiles that hold `count` elements (None: symbolic), each of `vectors` vectors.

    >>> tiles_holding(40, vectors=2, lanes=16)
    VectorTiles(tiles=2, vectors=2, lanes=16, is_exact=False, is_scalable=False)
    """
    if count is None:
        return VectorTiles(None, vectors, lanes, is_exact=False)
    tiles = -(-count // (vectors * lanes))
    return VectorTiles(tiles, vectors, lanes, is_exact=tiles * vectors * lanes == count)
