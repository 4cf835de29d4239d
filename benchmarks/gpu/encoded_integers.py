"""Small integers as elements of the dtypes of matrix instructions, for which NumPy has no conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

UNSIGNED_DTYPES = ("uint8", "uint4")


def encoded_integers(matrix: Array, dtype: str) -> Array:
    """Return integers as elements of a dtype, as NumPy stores them.

    >>> encoded_integers(np.array([1, -3]), "float8_e4m3").tolist()
    [56, 196]
    """
    # Small integers are exact in all of these, so that bits can be cut off.
    match dtype:
        case "float16":
            return matrix.astype(np.float16)
        case "tfloat32":
            return matrix.astype(np.float32)
        case "bfloat16":
            return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        case "float8_e5m2":
            return (matrix.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
        case "float8_e4m3":
            # The exponent has a bias of 7 in place of 15, the significand 3 bits in place of 10.
            magnitude = np.abs(matrix).astype(np.float16).view(np.uint16).astype(np.int64)
            bits: Array = np.where(magnitude, (magnitude - (8 << 10)) >> 7, 0)
            signed: Array = bits | (matrix < 0) << 7
            return signed.astype(np.uint8)
        case _:
            return matrix.astype(np.uint8 if dtype in UNSIGNED_DTYPES else np.int8)
