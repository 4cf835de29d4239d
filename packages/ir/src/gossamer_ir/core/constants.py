"""The canonical text of constants: equal values have equal text, so that nodes compare as their values.

Integers are decimal, bools are `True` and `False`. Floats have the shortest text that reads back as the
same value of their dtype, or `inf`, `-inf`, `nan`, `-0.0`. Unlike Python floats, texts distinguish
-0.0 from 0.0, and the text of NaN is equal to itself.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gossamer_ir.core.dtypes import EXACT_INTEGER, DType
from gossamer_ir.core.encodings import rounded_number
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Const

ConstantValue: TypeAlias = bool | int | float


def constant(value: ConstantValue, dtype_name: str) -> Const:
    """Return a `Const` of a Python value.

    Raises `ArgumentError`: `constant.range` if the dtype cannot represent the value, `constant.dtype` if
    it is a vector or a handle.

    >>> constant(-0.0, "float32")
    Const(dtype='float32', text='-0.0')
    """
    dtype = DType.parse(dtype_name)
    if dtype.is_vector or dtype.kind == "handle":
        raise ArgumentError(
            "constant.dtype",
            f"A constant cannot have the dtype '{dtype_name}'.",
            hint="Expected a scalar dtype of numbers or bools.",
        )
    if dtype.kind == "bool":
        return Const(dtype_name, str(bool(value)))
    if dtype.is_float:
        return Const(dtype_name, _float_text(float(value), dtype_name))
    return Const(dtype_name, _integer_text(value, dtype))


def value_of(const: Const) -> ConstantValue:
    """Return the Python value of a constant."""
    dtype = DType.parse(const.dtype)
    if dtype.kind == "bool":
        return const.text == "True"
    return float(const.text) if dtype.is_float else int(const.text)


def is_canonical(const: Const) -> bool:
    """Return whether the text of a constant is the canonical one for its value and dtype."""
    try:
        return constant(value_of(const), const.dtype) == const
    except (ValueError, OverflowError, ArgumentError):
        return False


def _integer_text(value: ConstantValue, dtype: DType) -> str:
    if isinstance(value, float) and not value.is_integer():
        raise ArgumentError(
            "constant.range", f"'{value}' is not an integer, as '{dtype.text}' needs."
        )
    low, high = dtype.limits
    number = int(value)
    if not low <= number <= high:
        raise ArgumentError(
            "constant.range",
            f"'{number}' does not fit in '{dtype.text}': expected {low} to {high}.",
        )
    return str(number)


def _float_text(value: float, dtype: str) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if dtype == "float64" or (value.is_integer() and abs(value) <= EXACT_INTEGER):
        return repr(value)
    with np.errstate(over="ignore"):
        text = str(rounded_number(value, dtype))
    if text.lstrip("-") == "inf":
        return text
    return text if any(mark in text for mark in ".en") else text + ".0"
