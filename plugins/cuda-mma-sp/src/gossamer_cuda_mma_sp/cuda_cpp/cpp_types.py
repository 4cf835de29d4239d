"""Types and constants of CUDA C++."""

from __future__ import annotations

import math

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.encodings import rounded_number
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Const

_SCALARS = {
    "float16": "gs::float16",
    "bfloat16": "gs::bfloat16",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}


def cpp_type(dtype_name: str) -> str:
    """Return the type of a dtype; raise `UnsupportedError` (`cuda.cpp`) for scalable vectors.

    >>> cpp_type("float32"), cpp_type("int8"), cpp_type("float16x4")
    ('float', 'int8_t', 'gs::vec<gs::float16, 4>')
    """
    dtype = DType.parse(dtype_name)
    if dtype.scalable:
        raise unprintable_error(f"'{dtype_name}'")
    scalar = _SCALARS.get(dtype.scalar, f"{dtype.scalar}_t")
    return f"gs::vec<{scalar}, {dtype.lanes}>" if dtype.is_vector else scalar


def cpp_constant(const: Const) -> str:
    """Return a constant, floats in hexadecimal, so that no digit is lost.

    >>> print(cpp_constant(Const("int64", "3")), cpp_constant(Const("float32", "0.1")))
    int64_t(3) 0x1.99999a0000000p-4f
    """
    dtype = DType.parse(const.dtype)
    if dtype.kind == "bool":
        return const.text.lower()
    if dtype.is_float:
        return _float_text(float(const.text), const.dtype)
    # The least int64 has no literal: it is the negative of one that is too large.
    low, _ = dtype.limits
    text = f"({low + 1} - 1)" if dtype.bits == 64 and int(const.text) == low < 0 else const.text
    return f"{cpp_type(const.dtype)}({text}{'u' if dtype.kind == 'uint' else ''})"


def _float_text(value: float, dtype: str) -> str:
    if math.isnan(value):
        return _convert("__longlong_as_double(0x7ff8000000000000)", dtype)
    if math.isinf(value):
        sign = "f" if value < 0 else "7"
        return _convert(f"__longlong_as_double(0x{sign}ff0000000000000)", dtype)
    # The text is the shortest that reads back as the same value of the dtype, and may be another float64.
    exact = float(rounded_number(value, dtype)).hex()
    return f"{exact}f" if dtype == "float32" else _convert(exact, dtype)


def _convert(text: str, dtype: str) -> str:
    return text if dtype == "float64" else f"gs::cast<{cpp_type(dtype)}>({text})"


def unprintable_error(what: str) -> UnsupportedError:
    """Return the error for a construct that is not printed.

    >>> unprintable_error("'Search'").code
    'cuda.cpp'
    """
    return UnsupportedError("cuda.cpp", f"{what} cannot be written in CUDA C++.")
