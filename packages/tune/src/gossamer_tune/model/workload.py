"""The use of a matrix: the other operand of its products, and the machine."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.dtypes import DType
from gossamer_machine.machine import Machine


class Workload(NamedTuple):
    """A product of a sparse matrix with a dense matrix of `features` columns, or with a vector (None), for
    values of a dtype, on this many `threads` of a machine."""

    features: int | None = None
    dtype: str = "float32"
    machine: Machine = Machine()
    threads: int = 1

    @property
    def element_bytes(self) -> int:
        return DType.parse(self.dtype).bits // 8

    @property
    def columns(self) -> int:
        """The number of columns of the dense operand; 1 for a vector."""
        return 1 if self.features is None else self.features

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the dense operand."""
        return self.columns * self.element_bytes

    @property
    def vectors(self) -> int:
        """The number of vector registers that hold a row of the dense operand.

        >>> Workload(features=40).vectors
        3
        """
        return -(-self.columns // self.machine.lanes(self.dtype))
