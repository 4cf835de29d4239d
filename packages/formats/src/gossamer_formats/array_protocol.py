"""The protocols of arrays and sequences, which matrices refuse where they would be slow or ambiguous."""

from __future__ import annotations

from typing import Any


class NotAnArray:
    """Refuses conversion to a NumPy array, length, iteration and truth value.

    >>> import numpy as np
    >>> np.asarray(NotAnArray())
    Traceback (most recent call last):
    ...
    TypeError: A NotAnArray is not converted to a dense array implicitly. Hint: call toarray().
    """

    __array_ufunc__ = None
    """Lets `array @ matrix` call `__rmatmul__`, or raise, instead of making an array of the matrix."""

    def __array__(self, *_options: Any, **_keywords: Any) -> Any:
        """Refuse: the dense array may take much more memory than the matrix."""
        raise TypeError(
            f"A {type(self).__name__} is not converted to a dense array implicitly. "
            "Hint: call toarray()."
        )

    def __len__(self) -> int:
        """Refuse: the length of a sparse matrix is ambiguous."""
        raise TypeError(
            f"The length of a {type(self).__name__} is ambiguous. Hint: use shape[0] or nnz."
        )

    def __iter__(self) -> Any:
        """Refuse: iteration over a sparse matrix is ambiguous."""
        raise TypeError(
            f"A {type(self).__name__} cannot be iterated over. "
            "Hint: use the elements of toarray(), or the stored arrays."
        )

    def __bool__(self) -> bool:
        """Refuse: the truth value of a sparse matrix is ambiguous."""
        raise TypeError(
            f"The truth value of a {type(self).__name__} is ambiguous. Hint: use nnz != 0."
        )
