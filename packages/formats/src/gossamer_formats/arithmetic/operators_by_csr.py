"""The operators of a matrix in parts, by the matrix in CSR."""

from __future__ import annotations

from typing import Any, Protocol


class _ConvertibleToCsr(Protocol):
    """A matrix that is converted to CSR."""

    def tocsr(self) -> Any: ...


class OperatorsByCsr:
    """Operators and reductions of `SparseTensor` for a matrix that has `tocsr`. Matrices that they return
    are in CSR.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import SparseTensor, decompose
    >>> A = decompose(SparseTensor(eye_array(3)), "hyb")
    >>> (2 * A)[1:].toarray()
    array([[0., 2., 0.],
           [0., 0., 2.]])
    >>> A.sum(axis=0)
    array([1., 1., 1.])
    """

    def __rmatmul__(self: _ConvertibleToCsr, other: Any) -> Any:
        return other @ self.tocsr()

    def __mul__(self: _ConvertibleToCsr, other: Any) -> Any:
        return self.tocsr() * other

    __rmul__ = __mul__

    def __truediv__(self: _ConvertibleToCsr, other: Any) -> Any:
        return self.tocsr() / other

    def __neg__(self: _ConvertibleToCsr) -> Any:
        return -self.tocsr()

    def __getitem__(self: _ConvertibleToCsr, rows: Any) -> Any:
        return self.tocsr()[rows]

    def sum(self: _ConvertibleToCsr, axis: int | None = None) -> Any:
        """Return `SparseTensor.sum`."""
        return self.tocsr().sum(axis)

    def mean(self: _ConvertibleToCsr, axis: int | None = None) -> Any:
        """Return `SparseTensor.mean`."""
        return self.tocsr().mean(axis)

    def max(self: _ConvertibleToCsr, axis: int | None = None) -> Any:
        """Return `SparseTensor.max`."""
        return self.tocsr().max(axis)

    def min(self: _ConvertibleToCsr, axis: int | None = None) -> Any:
        """Return `SparseTensor.min`."""
        return self.tocsr().min(axis)
