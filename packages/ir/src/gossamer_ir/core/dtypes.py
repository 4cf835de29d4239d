"""Data types: `float32`, with fixed lanes `float32x16`, with scalable lanes `float32xvscalex4`.

Nodes carry the canonical text; `DType.parse` gives the parts. `handle` is the type of a pointer
parameter and has no lanes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from gossamer_ir.errors import ArgumentError

Kind = Literal["int", "uint", "float", "bfloat", "bool", "handle"]

SCALARS: dict[str, tuple[Kind, int]] = {
    "bool": ("bool", 1),
    "int8": ("int", 8),
    "int16": ("int", 16),
    "int32": ("int", 32),
    "int64": ("int", 64),
    "uint8": ("uint", 8),
    "uint16": ("uint", 16),
    "uint32": ("uint", 32),
    "uint64": ("uint", 64),
    "float16": ("float", 16),
    "bfloat16": ("bfloat", 16),
    "float32": ("float", 32),
    "float64": ("float", 64),
    "handle": ("handle", 64),
}
"""Scalar name to (kind, bits)."""

INDEX_STORAGE = ("uint8", "uint16", "int32", "int64")
"""The types that `indptr` and `indices` may be stored in; arithmetic on them is int64."""

_PATTERN = re.compile(r"([a-z]+?\d*)(?:x(vscalex)?([1-9]\d{0,4}))?")


class DType(msgspec.Struct, frozen=True):
    """A scalar type and its lanes; `lanes` multiplies vscale when `scalable`."""

    scalar: str
    lanes: int = 1
    scalable: bool = False

    @staticmethod
    def parse(text: str) -> DType:
        """The parts of a canonical dtype text; `ArgumentError` (`dtype.unknown`) otherwise.

        >>> DType.parse("float32xvscalex4")
        DType(scalar='float32', lanes=4, scalable=True)
        """
        return _parse(text)

    @property
    def text(self) -> str:
        """The canonical text."""
        if self.scalable:
            return f"{self.scalar}xvscalex{self.lanes}"
        return self.scalar if self.lanes == 1 else f"{self.scalar}x{self.lanes}"

    @property
    def kind(self) -> Kind:
        return SCALARS[self.scalar][0]

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return SCALARS[self.scalar][1]

    @property
    def is_vector(self) -> bool:
        return self.scalable or self.lanes > 1

    @property
    def is_float(self) -> bool:
        return self.kind in ("float", "bfloat")

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest value of one lane, of integers and bools.

        >>> DType("int8").limits, DType("uint16").limits
        ((-128, 127), (0, 65535))
        """
        if self.kind == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def with_scalar(self, scalar: str) -> DType:
        """The same lanes of another scalar type."""
        return DType(scalar, self.lanes, self.scalable)


@lru_cache(maxsize=1024)
def _parse(text: str) -> DType:
    found = _PATTERN.fullmatch(text)
    if found is None or found[1] not in SCALARS or (found[1] == "handle" and found[3]):
        raise ArgumentError(
            "dtype.unknown",
            f"'{text}' is not a dtype.",
            hint=f"Expected one of {', '.join(SCALARS)}, with lanes as in float32x16 "
            "or float32xvscalex4.",
        )
    scalable = found[2] is not None
    lanes = int(found[3] or 1)
    if found[3] and lanes == 1 and not scalable:
        raise ArgumentError("dtype.unknown", f"'{text}' is not canonical: write '{found[1]}'.")
    return DType(found[1], lanes, scalable)


def scalar_of(text: str) -> str:
    """The scalar type's name: `float32` of `float32x16`."""
    return _parse(text).scalar


def with_lanes(text: str, lanes: int, *, scalable: bool = False) -> str:
    """The vector type of a scalar type.

    >>> with_lanes("float32", 16)
    'float32x16'
    """
    return DType(_parse(text).scalar, lanes, scalable).text
