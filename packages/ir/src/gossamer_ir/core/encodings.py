"""Scalar types that NumPy lacks: how numbers are rounded to them, and stored in arrays of another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.core.dtypes import SCALARS, scalar_of


class Encoding(msgspec.Struct, frozen=True):
    """Functions of scalars and arrays of NumPy. Values have the dtype `computed_in` of `SCALARS`, and stored
    elements the dtype `stored_as`."""

    round: Callable[[Any], Any]
    """Returns float32 or float64 values rounded once."""
    decode: Callable[[Any], Any]
    """Returns the values of stored elements."""
    encode: Callable[[Any], Any]
    """Returns the stored elements of values that have been rounded."""


ENCODINGS: dict[str, Encoding] = {
    "bfloat16": Encoding(round_bfloat16, decode_bfloat16, encode_bfloat16),
}
"""The encoding of each scalar type that NumPy lacks."""


def encoding_of(dtype: str) -> Encoding | None:
    """Return the encoding of a scalar or of the lanes of a vector; None if NumPy has the dtype."""
    return ENCODINGS.get(scalar_of(dtype))


def rounded_number(value: float, dtype: str) -> Any:
    """Return a number rounded once to a scalar dtype of floats."""
    encoding = encoding_of(dtype)
    return encoding.round(value) if encoding is not None else np.dtype(dtype).type(value)


def stored_bits(value: float, dtype: str) -> int:
    """Return the bits of a number of a scalar dtype of floats, as a signed integer.

    >>> stored_bits(1.5, "float16"), stored_bits(-2.0, "bfloat16")
    (15872, -16384)
    """
    encoding, number = encoding_of(dtype), rounded_number(value, dtype)
    stored = encoding.encode(number) if encoding is not None else number
    return int(np.asarray(stored).view(f"int{SCALARS[dtype].bits}")[()])
