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

DTypeKind: TypeAlias = Literal["int", "uint", "float", "bool", "handle"]


class ScalarType(msgspec.Struct, frozen=True):
    """The properties that distinguish a scalar type from the others."""

    kind: DTypeKind
    bits: int
    stored_as: str | None
    """The dtype of NumPy for arrays of it; None if it has none. If this is another one than its own name,
    `ENCODINGS` (`gossamer_ir.core.encodings`) has functions that convert."""
    significant_bits: int = 0
    """The bits of the significand of a float, with the implicit one."""
    largest: float = 0.0
    """The greatest finite number of a float."""
    computed_in: str | None = None
    """The scalar type in which operations and functions are computed, before they are rounded; None for
    itself."""


SCALARS: dict[str, ScalarType] = {
    "bool": ScalarType("bool", 1, "bool"),
    "int8": ScalarType("int", 8, "int8"),
    "int16": ScalarType("int", 16, "int16"),
    "int32": ScalarType("int", 32, "int32"),
    "int64": ScalarType("int", 64, "int64"),
    "uint8": ScalarType("uint", 8, "uint8"),
    "uint16": ScalarType("uint", 16, "uint16"),
    "uint32": ScalarType("uint", 32, "uint32"),
    "uint64": ScalarType("uint", 64, "uint64"),
    "float16": ScalarType("float", 16, "float16", 11, 65504.0, computed_in="float32"),
    "bfloat16": ScalarType(
        "float", 16, "uint16", 8, float.fromhex("0x1.fep127"), computed_in="float32"
    ),
    "float32": ScalarType("float", 32, "float32", 24, float.fromhex("0x1.fffffep127")),
    "float64": ScalarType("float", 64, "float64", 53, float.fromhex("0x1.fffffffffffffp1023")),
    "handle": ScalarType("handle", 64, None),
}
"""The scalar types by their names."""

SUM_DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float32",
    "bfloat16": "float32",
    "int8": "int32",
    "uint8": "int32",
}
"""The scalar type in which products of factors of a type are added, by operators and by matrix instructions.
Sums of int32 wrap."""

ROUNDED_OPERANDS = {"tfloat32": "float32"}
"""The precisions to which programs round factors (`T.tf32`), by the names of operands of matrix instructions,
and the scalar type of their elements and sums."""


def stored_operand_dtype(operands: str) -> str:
    """Return the scalar type of elements in memory for factors of a type, or of a precision to which they are
    rounded.

    >>> stored_operand_dtype("int8"), stored_operand_dtype("tfloat32")
    ('int8', 'float32')
    """
    return ROUNDED_OPERANDS.get(operands, operands)


NUMBERS: tuple[str, ...] = tuple(
    name for name, item in SCALARS.items() if item.kind in ("int", "uint", "float")
)
"""The scalar types that are numbers."""

EXACT_INTEGER: int = 2 ** min(item.significant_bits for item in SCALARS.values() if item.largest)
"""Integers up to this magnitude are exact in every floating-point dtype."""

INDEX_STORAGE = ("uint8", "uint16", "int32", "int64")
"""The dtypes in which `indptr` and `indices` may be stored; loaded values are widened to int64."""

WORD_STORAGE = ("uint8", "uint16", "uint32", "uint64")
"""The dtypes of the words of a bitmask."""

VSCALE_UNIT_BITS = 128
"""The bits of a vector register for each unit of vscale, as in Arm SVE."""

_PATTERN = re.compile(r"([a-z][a-z0-9_]*?)(?:x(vscalex)?([1-9]\d{0,4}))?")


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
        return SCALARS[self.scalar].kind

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return SCALARS[self.scalar].bits

    @property
    def is_vector(self) -> bool:
        return self.scalable or self.lanes > 1

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def computed_in(self) -> str:
        """The scalar type in which operations and functions are computed, before they are rounded."""
        return SCALARS[self.scalar].computed_in or self.scalar

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
    dtype = _parse(text)
    if dtype.scalable:
        return dtype.lanes
    if dtype.is_vector or dtype.kind == "handle":
        raise ArgumentError(
            "dtype.not_scalable",
            f"'{text}' is not the dtype of a scalable vector or of its lanes.",
            hint="Expected a dtype such as float32 or float32xvscalex4.",
        )
    # A bool takes a byte of memory.
    return VSCALE_UNIT_BITS // max(8, dtype.bits)


def with_lanes(text: str, lanes: int, *, scalable: bool = False) -> str:
    """Return the vector dtype with lanes of a scalar type.

    >>> with_lanes("float32", 16)
    'float32x16'
    """
    return DType(_parse(text).scalar, lanes, scalable).text
