"""Cached questions about dtypes, asked for every node."""

from __future__ import annotations

from functools import lru_cache

from gossamer_ir.core.constants import is_canonical
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Const, Lanes


@lru_cache(maxsize=1024)
def known(text: str) -> DType | None:
    """The parts of a dtype that values may have; None for `handle` and for what is no dtype."""
    try:
        found = DType.parse(text)
    except ArgumentError:
        return None
    return None if found.kind == "handle" else found


@lru_cache(maxsize=1024)
def is_integer(text: str) -> bool:
    """Whether values, or lanes, are integers."""
    found = known(text)
    return found is not None and found.is_integer


@lru_cache(maxsize=1024)
def is_float(text: str) -> bool:
    """Whether values, or lanes, are floats."""
    found = known(text)
    return found is not None and found.is_float


@lru_cache(maxsize=1024)
def is_bool(text: str) -> bool:
    """Whether values, or lanes, are bools."""
    found = known(text)
    return found is not None and found.kind == "bool"


def is_number(text: str) -> bool:
    """Whether values, or lanes, are integers or floats."""
    return is_integer(text) or is_float(text)


@lru_cache(maxsize=1024)
def is_vector(text: str) -> bool:
    """Whether the dtype has lanes."""
    found = known(text)
    return found is not None and found.is_vector


@lru_cache(maxsize=1024)
def with_lanes_of(scalar: str, vector: str) -> str:
    """The dtype with the lanes of another."""
    kind, lanes = known(scalar), known(vector)
    if kind is None or lanes is None:
        return scalar
    return lanes.with_scalar(kind.scalar).text


@lru_cache(maxsize=1024)
def vector_of(scalar: str, lanes: Lanes) -> str:
    """The vector dtype of a scalar one."""
    return DType(scalar, lanes.count, lanes.scalable).text


@lru_cache(maxsize=4096)
def is_constant(dtype: str, text: str) -> bool:
    """Whether the text is a constant's canonical text."""
    return is_canonical(Const(dtype, text))
