"""Tiles of the product of a matrix in tiles of columns with a dense matrix, for the rule that schedules it
and for the model of its cost."""

from __future__ import annotations

import msgspec

MAX_PACKED_VECTORS = 8
"""Maximum number of vectors of a feature tile (measured on pruned weights with 512 features: tiles of 4
and of 8 vectors are equal within 5 percent, and 16 vectors do not stay in the private cache)."""

PACKED_BYTES = 64 << 10
"""Maximum size of the packed rows. They must leave room in the private cache for the matrix and the output,
and a larger buffer might be allocated anew for each column tile, since it does not fit the stack."""

MIN_PANEL, MAX_PANEL = 64, 512
"""Limits of the rows of a panel. The dense operand is packed once for each panel (measured: panels of 128
rows are 1.05 to 1.4 times slower than panels of 512)."""

PANELS = 2
"""Minimum number of panels of a matrix with enough rows, so that two threads have one each."""

SHARED_TILES = 4
"""Feature tiles of which threads take shares, so that one panel of all rows is enough: each panel packs the
dense operand again. (Measured on Zen 3 with 512 rows and 4 or 8 feature tiles, one panel against two: 1.0 to
1.2 times as fast on one thread, 1.1 to 1.4 on two. With 2 feature tiles on two threads: 0.8 to 1.0.)"""


class ColumnTiling(msgspec.Struct, frozen=True):
    """The tiles of features, the vectors of each, and the rows of a panel. `is_packed` is false if one vector
    of each row of a column tile exceeds the limit."""

    feature_tiles: int
    vectors: int
    panel: int
    is_packed: bool


def column_tiling(vectors: int, *, vector_bytes: int, rows: int | None) -> ColumnTiling:
    """Return the fewest feature tiles, all with as many vectors, and the rows of a panel.

    A row of the dense operand has `vectors` vectors. `vector_bytes` is the size of one vector of each row
    that a column tile selects, and `rows` the number of rows of the matrix (None: not known).

    >>> column_tiling(9, vector_bytes=64 * 64, rows=4096)
    ColumnTiling(feature_tiles=2, vectors=5, panel=512, is_packed=True)
    """
    fitting = PACKED_BYTES // vector_bytes
    feature_tiles = -(-vectors // min(fitting or MAX_PACKED_VECTORS, MAX_PACKED_VECTORS))
    return ColumnTiling(
        feature_tiles,
        vectors=-(-vectors // feature_tiles),
        panel=panel_rows(rows, feature_tiles=feature_tiles),
        is_packed=fitting > 0,
    )


def panel_rows(rows: int | None, *, feature_tiles: int = 1) -> int:
    """Return the rows of a panel of a matrix with a number of rows (None: not known).

    >>> panel_rows(300), panel_rows(300, feature_tiles=4)
    (150, 300)
    """
    panels = 1 if feature_tiles >= SHARED_TILES else PANELS
    wanted = MAX_PANEL if rows is None else rows // panels
    return min(max(wanted, MIN_PANEL), MAX_PANEL)
