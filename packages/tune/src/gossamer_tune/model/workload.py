"""What a matrix is used for: the operator, the sizes of its operands, the machine."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gossamer_ir.core.dtypes import DType
from gossamer_ir.machine.hardware_params import HardwareParams

Operation: TypeAlias = Literal["spmm", "spmv"]
"""The operators whose formats are chosen."""


class Workload(NamedTuple):
    """A product of a sparse matrix with a dense matrix of `features` columns (1: a vector), for values of a
    dtype, on a machine."""

    op: Operation
    features: int = 1
    dtype: str = "float32"
    hardware: HardwareParams = HardwareParams()

    @property
    def element_bytes(self) -> int:
        return DType.parse(self.dtype).bits // 8

    @property
    def vectors(self) -> int:
        """The number of vector registers that hold a row of the dense operand.

        >>> Workload("spmm", features=40).vectors
        3
        """
        return -(-self.features // self.hardware.lanes(self.dtype))
