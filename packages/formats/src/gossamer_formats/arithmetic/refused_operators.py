"""The operators of Python that tensors do not have: they are refused with a hint."""

from __future__ import annotations

from typing import Any

from gossamer_ir.errors import UnsupportedError


class RefusedOperators:
    """Refuses sums, powers and comparisons, whose results have other patterns or none.

    >>> RefusedOperators() + 1
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.UnsupportedError: The operator '+' is not defined for a RefusedOperators. Use \
to_scipy(), whose result has it. [tensor.operator]
    """

    def _operator_error(self, operator: str) -> UnsupportedError:
        return UnsupportedError(
            "tensor.operator",
            f"The operator '{operator}' is not defined for a {type(self).__name__}.",
            hint="Use to_scipy(), whose result has it.",
        )

    def __add__(self, other: Any) -> Any:
        """Refuse a sum."""
        raise self._operator_error("+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """Refuse a difference."""
        raise self._operator_error("-")

    __rsub__ = __sub__

    def __pow__(self, other: Any) -> Any:
        """Refuse a power."""
        raise self._operator_error("**")

    def __lt__(self, other: Any) -> Any:
        """Refuse a comparison."""
        raise self._operator_error("<")

    __gt__ = __le__ = __ge__ = __lt__
