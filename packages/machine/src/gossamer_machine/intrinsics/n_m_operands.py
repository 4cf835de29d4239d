"""The operands of products of N:M matrices by matrix instructions: their dtypes, and the patterns of the
matrices."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.dtypes import ROUNDED_OPERANDS, SUM_DTYPES
from gossamer_machine.intrinsics.float8_operands import FLOAT8_OPERANDS


class NMOperands(msgspec.Struct, frozen=True):
    """Operands as instructions multiply them: the dtype of the elements in memory, the pattern of the sparse
    matrix, and the values that elements may have."""

    stored_as: str
    slots: int = 2
    """The units of a group that are stored."""
    units: int = 4
    """The units of a group, of which the metadata has indices."""
    unit_columns: int = 1
    """The columns of a unit: 2 if the elements of a pair are stored together."""
    limits: tuple[int, int] | None = None
    """The least and the greatest value of an element, if instructions read fewer bits than it has in
    memory."""
    decoded_as: str | None = None
    """The dtype of the values that elements encode; None if that is the dtype in memory."""

    @property
    def group(self) -> int:
        """The columns of a group."""
        return self.units * self.unit_columns

    @property
    def pattern(self) -> str:
        """The pattern in words."""
        return f"{self.slots * self.unit_columns}:{self.group}"

    @property
    def sums(self) -> str:
        """The dtype in which products are added."""
        return SUM_DTYPES[self.decoded_as or self.stored_as]


SPECIAL_OPERANDS: dict[str, NMOperands] = {
    **{name: NMOperands(dtype, slots=1, units=2) for name, dtype in ROUNDED_OPERANDS.items()},
    **{name: NMOperands("uint8", decoded_as="float32") for name in FLOAT8_OPERANDS},
    "int4": NMOperands("int8", unit_columns=2, limits=(-8, 7)),
    "uint4": NMOperands("uint8", unit_columns=2, limits=(0, 15)),
}
"""The operands that instructions read in another precision than elements have in memory, by the names of
these precisions."""


def n_m_operands(dtype: str) -> NMOperands:
    """Return the operands of a dtype of `SUM_DTYPES`, or of a precision of `SPECIAL_OPERANDS`.

    >>> n_m_operands("int8").pattern, n_m_operands("tfloat32").pattern, n_m_operands("int4").pattern
    ('2:4', '1:2', '4:8')
    """
    return SPECIAL_OPERANDS.get(dtype) or NMOperands(dtype)
