"""The dtypes of values, and how NumPy stores and converts them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.core.encodings import ENCODINGS
from gossamer_support.arrays import Array

VALUE_DTYPES = ("float32", "float64", "float16", "bfloat16", "int8")

WIDE_DTYPES = ("float32", "float64")
"""The dtypes of values in which products of them are added, too."""

NUMPY_DTYPES = tuple(name for name in VALUE_DTYPES if name not in ENCODINGS)
"""The dtypes of values that NumPy has, too."""


SCIPY_DTYPES = tuple(name for name in NUMPY_DTYPES if name != "float16")
"""Those that SciPy's matrices may have."""


def value_array_dtype(dtype: str) -> np.dtype[Any]:
    """Return the dtype of arrays with values of a dtype: NumPy lacks bfloat16, whose bits are uint16.

    >>> value_array_dtype("float16"), value_array_dtype("bfloat16")
    (dtype('float16'), dtype('uint16'))
    """
    return np.dtype(SCALARS[dtype].stored_as)


def is_encoded(dtype: str) -> bool:
    """Return whether NumPy lacks a dtype, so that it cannot compute with arrays of it.

    >>> is_encoded("bfloat16"), is_encoded("float16")
    (True, False)
    """
    return dtype in ENCODINGS


def decoded_values(values: Array, dtype: str) -> Array:
    """Return values in a dtype of NumPy: bfloat16 as float32, which is exact.

    >>> decoded_values(np.array([0x3FC0], np.uint16), "bfloat16")
    array([1.5], dtype=float32)
    """
    if not is_encoded(dtype):
        return values
    decoded: Array = np.atleast_1d(ENCODINGS[dtype].decode(values)).reshape(values.shape)
    return decoded


def converted_values(values: Array, source: str, destination: str) -> Array:
    """Return the stored values of a dtype converted to another one, as casts of programs convert them: floats
    are rounded once, to infinity if they are too large, and become integers by truncation with saturation.

    >>> converted_values(np.array([1.6, -300.0, np.nan]), "float64", "int8")
    array([   1, -128,    0], dtype=int8)
    >>> converted_values(np.array([1.0, 1.00390625]), "float64", "bfloat16")
    array([16256, 16256], dtype=uint16)
    """
    # Imported late: most programs convert no values.
    from gossamer_ir.interpret.memory.values import conversion, encode_elements

    with np.errstate(over="ignore", invalid="ignore"):
        decoded = decoded_values(values, source)
        if not is_encoded(destination) and not (
            destination == "int8" and decoded.dtype.kind == "f"
        ):
            return decoded.astype(destination)
        converted: Array = np.asarray(
            encode_elements(conversion(source, destination)(decoded), destination)
        )
    return converted.reshape(values.shape)


# As many as there are dtypes of numbers in both byte orders; others are errors.
@lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype; a name with the byte order if that is not this machine's.

    >>> dtype_name(np.dtype("float32")), dtype_name(np.dtype("float32").newbyteorder()) == "float32"
    ('float32', False)
    """
    return dtype.name if dtype.isnative else dtype.str
