"""Data types: scalars (`float32`), fixed vectors (`float32x16`), scalable vectors (`float32xvscalex4`).

Nodes hold the canonical text; `DType.parse` returns its parts. `handle` is the type of a pointer
parameter and has no vector form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from gossamer_ir.errors import ArgumentError

DTypeKind: TypeAlias = Literal["int", "uint", "float", "bfloat", "bool", "handle"]

SCALARS: dict[str, tuple[DTypeKind, int]] = {
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
"""The kind and the number of bits of each scalar type."""

INDEX_STORAGE = ("uint8", "uint16", "int32", "int64")
"""The dtypes in which `indptr` and `indices` may be stored; loaded values are widened to int64."""

WORD_STORAGE = ("uint8", "uint16", "uint32", "uint64")
"""The dtypes of the words of a bitmask."""

VSCALE_UNIT_BITS = 128
"""The bits of a vector register for each unit of vscale, as in Arm SVE."""

_PATTERN = re.compile(r"([a-z]+?\d*)(?:x(vscalex)?([1-9]\d{0,4}))?")


class DType(msgspec.Struct, frozen=True):
    """A scalar type and a number of lanes, `lanes` or, if `scalable`, `lanes * vscale`."""

    scalar: str
    lanes: int = 1
    scalable: bool = False

    @staticmethod
    def parse(text: str) -> DType:
        """Return the parts of the canonical text of a dtype; raises `ArgumentError` (`dtype.unknown`)
        otherwise.

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
    def kind(self) -> DTypeKind:
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
        """The least and the greatest value of one lane; for integers and bools only.

        >>> DType("int8").limits, DType("uint16").limits
        ((-128, 127), (0, 65535))
        """
        if self.kind == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def with_scalar(self, scalar: str) -> DType:
        """Return the dtype with as many lanes of another scalar type."""
        return DType(scalar, self.lanes, self.scalable)


@lru_cache(maxsize=1024)
def _parse(text: str) -> DType:
    match = _PATTERN.fullmatch(text)
    if match is None or match[1] not in SCALARS or (match[1] == "handle" and match[3]):
        raise ArgumentError(
            "dtype.unknown",
            f"'{text}' is not a dtype.",
            hint=f"Expected one of {', '.join(SCALARS)}, with lanes as in float32x16 "
            "or float32xvscalex4.",
        )
    scalable = match[2] is not None
    lanes = int(match[3] or 1)
    if match[3] and lanes == 1 and not scalable:
        raise ArgumentError("dtype.unknown", f"'{text}' is not canonical: write '{match[1]}'.")
    return DType(match[1], lanes, scalable)


def scalar_of(text: str) -> str:
    """Return the name of the scalar type: `float32` for `float32x16`."""
    return _parse(text).scalar


def vscale_factor(text: str) -> int:
    """Return the number of lanes of a scalable vector for each unit of vscale. For a scalar, that of a vector
    of it that fills a register. Raises `ArgumentError` (`dtype.not_scalable`) for other dtypes.

    >>> vscale_factor("float32xvscalex8"), vscale_factor("float32"), vscale_factor("bool")
    (8, 4, 16)
    """
    kind = _parse(text)
    if kind.scalable:
        return kind.lanes
    if kind.is_vector or kind.kind == "handle":
        raise ArgumentError(
            "dtype.not_scalable",
            f"'{text}' is not the dtype of a scalable vector or of its lanes.",
            hint="Expected a dtype such as float32 or float32xvscalex4.",
        )
    # A bool takes a byte of memory.
    return VSCALE_UNIT_BITS // max(8, kind.bits)


def with_lanes(text: str, lanes: int, *, scalable: bool = False) -> str:
    """Return the vector dtype with lanes of a scalar type.

    >>> with_lanes("float32", 16)
    'float32x16'
    """
    return DType(_parse(text).scalar, lanes, scalable).text
