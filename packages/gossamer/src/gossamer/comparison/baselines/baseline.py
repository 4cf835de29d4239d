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

    `prepare` and `bound` take a matrix in CSR and the dense operands. `prepare` returns the function that is
    timed. Each dense operand has a row for each row or column of the matrix, as `operands` states, and so
    has the result, unless it has one value for each stored element.
    """

    description: str
    prepare: Callable[..., Calculation]
    bound: Callable[..., RoundingBound]
    operands: tuple[Literal["rows", "columns"], ...]
    result: Literal["rows", "elements"] = "rows"
    of_vectors: bool = False

    def operand_shapes(self, shape: tuple[int, ...], features: int) -> list[tuple[int, ...]]:
        """Return the shapes of the dense operands for a matrix of this shape.

        >>> from gossamer.comparison.baselines import baseline_of
        >>> baseline_of("sddmm").operand_shapes((2, 3), 64)
        [(2, 64), (3, 64)]
        """
        width = () if self.of_vectors else (features,)
        return [(shape[0] if side == "rows" else shape[1], *width) for side in self.operands]

    def result_shape(self, shape: tuple[int, ...], nnz: int, features: int) -> tuple[int, ...]:
        """Return the shape of the result for a matrix of this shape.

        >>> from gossamer.comparison.baselines import baseline_of
        >>> baseline_of("spmm").result_shape((2, 3), 4, 64)
        (2, 64)
        >>> baseline_of("sddmm").result_shape((2, 3), 4, 64)
        (4,)
        """
        if self.result == "elements":
            return (nnz,)
        return (shape[0],) if self.of_vectors else (shape[0], features)
