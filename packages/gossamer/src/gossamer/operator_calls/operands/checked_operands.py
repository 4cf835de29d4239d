"""The interface of the checked operands of a call."""

from __future__ import annotations

from typing import Protocol

from gossamer.operator_calls.kernels import KernelRequest
from gossamer.operator_calls.program import OperatorProgram
from gossamer_formats import Array


class CheckedOperands(Protocol):
    """The checked operands of one call: `Operands`, or those of a variant for another format."""

    @property
    def dense(self) -> dict[str, Array]:
        """The dense operands by parameter."""

    @property
    def output(self) -> str:
        """The parameter of the result."""

    @property
    def dtype(self) -> str:
        """The dtype of the result."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""

    @property
    def products(self) -> int:
        """The number of products that a kernel computes."""

    @property
    def is_zero(self) -> bool:
        """True if the result is zero, or empty, as there is nothing to sum."""

    @property
    def plan_key(self) -> object | None:
        """The key of plans that fit the matrix; None if calls with it have no plans."""

    @property
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parameters of kernels for the arrays and for the sizes of the matrix, for plans."""

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameters for arrays whose contents were checked when the operands were."""

    def request(self, program: OperatorProgram, /) -> KernelRequest:
        """Return the request for the kernel of a program."""

    def arguments(self, program: OperatorProgram, result: Array, /) -> dict[str, Array]:
        """Return all arrays of the call by parameter of the kernel."""

    def cut_long_rows(self) -> tuple[CheckedOperands, Array] | None:
        """Return operands whose matrix has a row for each block of a row, and the number of the first block
        of each row; None if every row can be added one by one."""
