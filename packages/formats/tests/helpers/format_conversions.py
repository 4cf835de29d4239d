"""Tensors in formats, and their conversions."""

from __future__ import annotations

import numpy as np

from gossamer_formats import from_arrays


def with_duplicates():
    arrays = {"indptr": np.array([0, 3, 4]), "indices": np.array([1, 1, 0, 2])}
    return from_arrays("csr", (2, 3), data=np.array([1.0, 2.0, 4.0, 8.0]), **arrays)


TILES = """
@T.format
def tiles(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, tiles: T.int64, side: T.int64,
) -> None:
    JO = T.sp.dense_fixed((n + side - 1) // side)
    IO = T.sp.compressed_varied(JO, ((m + side - 1) // side, tiles), (indptr, indices), "int32")
    II = T.sp.dense_fixed(side)
    JI = T.sp.dense_fixed(side)
    A = T.sp.match_buffer(data, (JO, IO, II, JI), "float32")
    T.sp.map(lambda jo, io, ii, ji: (io * side + ii, jo * side + ji){shape})
"""
