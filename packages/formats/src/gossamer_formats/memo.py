"""Values that are derived once from the arrays of a matrix, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class KeepsValues(Protocol):
    """A matrix whose arrays are read-only, so that what was derived from them stays true. `memo` is read and
    written by the methods of keys only."""

    memo: dict[MemoKey[Any], Any]


M = TypeVar("M", bound=KeepsValues)


class SparsityPattern:
    """Results derived from the index arrays of a matrix alone. Matrices that differ in nothing but their
    values share it, so that it outlives each of them.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import SparseTensor
    >>> from gossamer_formats.tensors.replace_values import replace_values
    >>> tensor = SparseTensor(eye_array(3))
    >>> replace_values(tensor, 2 * tensor.storage.values).pattern is tensor.pattern
    True
    """

    __slots__ = ("memo",)

    def __init__(self) -> None:
        self.memo: dict[MemoKey[Any], Any] = {}


class MemoKey(Generic[T]):
    """The key of a value of type `T` in the memo of a matrix.

    Each derived value has a key of its own: keys are equal only to themselves, so two values never meet under
    one name. No lock is held, since a process forked in the meantime would inherit it locked: two threads may
    both compute a value, and all get the one that was stored first.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import SparseTensor
    >>> LARGEST = MemoKey[float]("the largest value")
    >>> tensor = SparseTensor(eye_array(3))
    >>> LARGEST.find(tensor)
    >>> LARGEST.get(tensor, lambda matrix: float(matrix.arrays["data"].max()))
    1.0
    >>> LARGEST.find(tensor)
    1.0
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """`name` says in `repr` what is kept."""
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def find(self, matrix: KeepsValues) -> T | None:
        """Return the value of a matrix; None if it has none yet."""
        return matrix.memo.get(self)

    def get(self, matrix: M, make: Callable[[M], T]) -> T:
        """Return the value of a matrix, which `make` computes at the first call. It may be None, too."""
        memo = matrix.memo
        value: T = memo.get(self, _MISSING)
        # Not None, which a value may be.
        if value is _MISSING:
            value = memo.setdefault(self, make(matrix))
        return value

    def keep(self, matrix: KeepsValues, value: T) -> None:
        """Keep a value for a matrix, in place of an earlier one."""
        matrix.memo[self] = value


_MISSING: Any = object()
