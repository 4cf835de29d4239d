"""Properties of dtypes. They are cached because the verifiers query them for every node."""

from __future__ import annotations

from functools import lru_cache

from gossamer_ir.core.constants import is_canonical
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Const, Lanes


@lru_cache(maxsize=1024)
def parse_dtype(text: str) -> DType | None:
    """Return the parsed dtype, or None for `handle` and for text that is not a dtype."""
    try:
        dtype = DType.parse(text)
    except ArgumentError:
        return None
    return None if dtype.kind == "handle" else dtype


@lru_cache(maxsize=1024)
def is_integer(text: str) -> bool:
    """Return whether the scalar or the lanes are integers."""
    dtype = parse_dtype(text)
    return dtype is not None and dtype.is_integer


@lru_cache(maxsize=1024)
def is_float(text: str) -> bool:
    """Return whether the scalar or the lanes are floats."""
    dtype = parse_dtype(text)
    return dtype is not None and dtype.is_float


@lru_cache(maxsize=1024)
def is_bool(text: str) -> bool:
    """Return whether the scalar or the lanes are bools."""
    dtype = parse_dtype(text)
    return dtype is not None and dtype.kind == "bool"


def is_number(text: str) -> bool:
    """Return whether the scalar or the lanes are integers or floats."""
    return is_integer(text) or is_float(text)


@lru_cache(maxsize=1024)
def is_vector(text: str) -> bool:
    """Return whether the dtype is a vector."""
    dtype = parse_dtype(text)
    return dtype is not None and dtype.is_vector


@lru_cache(maxsize=1024)
def with_lanes_of(scalar: str, vector: str) -> str:
    """Return the scalar type of the first dtype with the lanes of the second."""
    dtype, lanes = parse_dtype(scalar), parse_dtype(vector)
    if dtype is None or lanes is None:
        return scalar
    return lanes.with_scalar(dtype.scalar).text


@lru_cache(maxsize=1024)
def vector_of(scalar: str, lanes: Lanes) -> str:
    """Return the vector dtype with these lanes of a scalar."""
    return DType(scalar, lanes.count, lanes.scalable).text


@lru_cache(maxsize=4096)
def is_constant_expr(dtype: str, text: str) -> bool:
    """Return whether the text is the canonical text of a constant of this dtype."""
    return is_canonical(Const(dtype, text))
