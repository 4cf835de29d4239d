"""The dtypes of the operands of sparse tensor cores, and how NumPy stores them."""

from __future__ import annotations

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.n_m.n_m_patterns import FOUR_OF_EIGHT, ONE_OF_TWO, TWO_OF_FOUR, NMPattern
from gossamer_ir.errors import ArgumentError
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS
from gossamer_support.arrays import Array


class OperandDType(msgspec.Struct, frozen=True):
    """A dtype of the operands A and B of a sparse matrix instruction."""

    name: str
    stored_as: str
    """The dtype of NumPy for arrays of it, one element each."""
    bits: int
    """The bits of an element in a register."""
    pattern: NMPattern
    is_signed_zero: bool = False
    """True if the highest bit of a stored element is its sign, which a zero may have."""
    limits: tuple[int, int] | None = None
    """The least and the greatest value, where the stored dtype has others."""

    @property
    def unit_bits(self) -> int:
        """The bits of a unit of the pattern as it is stored."""
        return np.dtype(self.stored_as).itemsize * 8 * self.pattern.unit_columns

    @property
    def register_elements(self) -> int:
        """The elements of a register of 32 bits."""
        return 32 // self.bits


OPERAND_DTYPES: dict[str, OperandDType] = {
    dtype.name: dtype
    for dtype in (
        OperandDType("float16", "float16", 16, TWO_OF_FOUR, is_signed_zero=True),
        OperandDType("bfloat16", "uint16", 16, TWO_OF_FOUR, is_signed_zero=True),
        OperandDType("tfloat32", "float32", 32, ONE_OF_TWO, is_signed_zero=True),
        OperandDType("int8", "int8", 8, TWO_OF_FOUR),
        OperandDType("uint8", "uint8", 8, TWO_OF_FOUR),
        OperandDType("float8_e4m3", "uint8", 8, TWO_OF_FOUR, is_signed_zero=True),
        OperandDType("float8_e5m2", "uint8", 8, TWO_OF_FOUR, is_signed_zero=True),
        OperandDType("int4", "int8", 4, FOUR_OF_EIGHT, limits=SPECIAL_OPERANDS["int4"].limits),
        OperandDType("uint4", "uint8", 4, FOUR_OF_EIGHT, limits=SPECIAL_OPERANDS["uint4"].limits),
    )
}
"""The dtypes by their names. bfloat16 and the dtypes of 8 bits are stored as their bits, int4 and uint4 as
one element a byte."""
DEFAULTS = {
    "float16": "float16",
    "float32": "tfloat32",
    "int8": "int8",
    "uint8": "uint8",
    "uint16": "bfloat16",
}
"""The operand dtype that an array has if none is named, by its dtype of NumPy."""


def operand_dtype_named(name: str) -> OperandDType:
    """Return the record of a dtype; raises `ArgumentError` (`n_m.dtype`) if there is none.

    >>> operand_dtype_named("int4").pattern.name
    '4:8'
    """
    dtype = OPERAND_DTYPES.get(name)
    if dtype is None:
        raise ArgumentError(
            "n_m.dtype",
            f"'{name}' is not a dtype of sparse tensor cores; expected one of "
            f"{', '.join(OPERAND_DTYPES)}.",
        )
    return dtype


def dtype_of_operand(array: Array, name: str | None) -> OperandDType:
    """Return the record of the operand dtype of an array, that of its dtype of NumPy if `name` is None.

    Raises `ArgumentError`: `n_m.dtype` (no such dtype, or the array is not stored as one),
    `n_m.range` (an element is outside of the limits of int4 or uint4).

    >>> dtype_of_operand(np.zeros(3, np.float32), None).name
    'tfloat32'
    """
    dtype = operand_dtype_named(
        DEFAULTS.get(array.dtype.name, array.dtype.name) if name is None else name
    )
    if array.dtype.name != dtype.stored_as:
        raise ArgumentError(
            "n_m.dtype",
            f"The array has the dtype {array.dtype.name}; elements of {dtype.name} are stored as "
            f"{dtype.stored_as}.",
        )
    _require_range(array, dtype)
    return dtype


def _require_range(array: Array, dtype: OperandDType) -> None:
    if dtype.limits is None or not array.size:
        return
    least, most = dtype.limits
    for value in (int(array.min()), int(array.max())):
        if not least <= value <= most:
            raise ArgumentError(
                "n_m.range",
                f"An element is {value}; expected values of {dtype.name}, from {least} to {most}.",
            )
