"""Operators that are bound to arrays and need several kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gossamer_backend import BoundCall
from gossamer_backend.internal_api import ArgumentValue


class BoundKernels:
    """Bound calls that compute one result: those for the parts of a matrix, or for ranges of its rows.

    `bound()` runs them one after the other; Ctrl-C is noticed between them. `before` and `after` prepare the
    result and complete it.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> matrix = scipy.sparse.csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]]))
    >>> A, x, y = gs.decompose(matrix, "hyb", k=2), np.ones(3), np.empty(2)
    >>> step = gs.spmv.bind(A, x, out=y)
    >>> len(step.calls)
    2
    >>> step()
    >>> y
    array([6., 4.])
    """

    __slots__ = ("_after", "_before", "arguments", "calls")

    def __init__(
        self,
        calls: Sequence[BoundCall],
        arguments: Mapping[str, ArgumentValue],
        *,
        before: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """`arguments` are the values of the parameters for all calls together."""
        self.calls = tuple(calls)
        self.arguments = arguments
        self._before = before
        self._after = after

    def __call__(self) -> None:
        """Compute the result; errors are those of the calls."""
        if self._before is not None:
            self._before()
        for call in self.calls:
            call()
        if self._after is not None:
            self._after()
