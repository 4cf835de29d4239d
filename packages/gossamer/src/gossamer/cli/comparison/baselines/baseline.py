"""The record of a baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from gossamer_formats import Array

Calculation: TypeAlias = Callable[[], Array]


class RoundingBound(NamedTuple):
    """Sums of the absolute values of the terms of each element of a result, and the numbers of terms, which
    broadcast to them."""

    magnitude: Array
    terms: Array


class Baseline(msgspec.Struct, frozen=True):
    """The program of an operator in SciPy, in words and as a function, and the shapes of its operands.

    `prepare` and `bound` take a matrix in CSR and the dense operands.
    """

    description: str
    prepare: Callable[..., Calculation]
    """Returns the function that is timed."""
    bound: Callable[..., RoundingBound]
    """Returns the bound of rounding errors."""
    operands: tuple[Literal["rows", "columns"], ...]
    """Each dense operand has a row for each row or for each column of the matrix."""
    result: Literal["rows", "elements"] = "rows"
    """The result has a row for each row of the matrix, or a value for each stored element."""
    is_of_vectors: bool = False
    """True if the dense operands are vectors."""

    def operand_shapes(self, shape: tuple[int, ...], features: int) -> list[tuple[int, ...]]:
        """Return the shapes of the dense operands for a matrix of this shape.

        >>> from gossamer.cli.comparison.baselines import baseline_of
        >>> baseline_of("sddmm").operand_shapes((2, 3), 64)
        [(2, 64), (3, 64)]
        """
        width = () if self.is_of_vectors else (features,)
        return [(shape[0] if side == "rows" else shape[1], *width) for side in self.operands]

    def result_shape(self, shape: tuple[int, ...], nnz: int, features: int) -> tuple[int, ...]:
        """Return the shape of the result for a matrix of this shape.

        >>> from gossamer.cli.comparison.baselines import baseline_of
        >>> baseline_of("spmm").result_shape((2, 3), 4, 64)
        (2, 64)
        >>> baseline_of("sddmm").result_shape((2, 3), 4, 64)
        (4,)
        """
        if self.result == "elements":
            return (nnz,)
        return (shape[0],) if self.is_of_vectors else (shape[0], features)
