"""The groups of asynchronous copies that threads have not waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from gossamer_ir.interpret.threads.grid import ThreadPath

T = TypeVar("T")

_ThreadKey: TypeAlias = frozenset[tuple[str, int]]
"""The numbers of a thread along axes: two loops over threads run the same threads."""


class PendingCopies(Generic[T]):
    """The copies of each thread: those that it has begun, and groups of them.

    A path outside of the loops over the threads of a block stands for all of its threads.

    >>> copies = PendingCopies()
    >>> copies.begin((), "first")
    >>> copies.commit(())
    >>> copies.begin((), "second")
    >>> copies.commit(())
    >>> copies.wait((), 1), copies.wait((), 0)
    (['first'], ['second'])
    """

    def __init__(self) -> None:
        self._begun: dict[_ThreadKey, list[T]] = {}
        self._groups: dict[_ThreadKey, list[list[T]]] = {}

    def begin(self, path: ThreadPath, copied: T) -> None:
        """Add what a thread copies."""
        self._begun.setdefault(_key_of(path), []).append(copied)

    def commit(self, path: ThreadPath) -> None:
        """Make a group of what each thread of a path has begun to copy."""
        for key in self._threads_at(path):
            self._groups.setdefault(key, []).append(self._begun.pop(key, []))

    def wait(self, path: ThreadPath, pending: int) -> list[T]:
        """Return what threads have copied in all of their groups but the last `pending` ones."""
        complete: list[T] = []
        for key in self._threads_at(path):
            groups = self._groups.get(key, [])
            count = max(0, len(groups) - pending)
            complete += [copied for group in groups[:count] for copied in group]
            del groups[:count]
        return complete

    def _threads_at(self, path: ThreadPath) -> Iterator[_ThreadKey]:
        """Return the threads of a path that have copied something. Older groups of others are empty, and
        complete first."""
        at = _key_of(path)
        yield from {key for key in (*self._begun, *self._groups) if at <= key} | {at}


def _key_of(path: ThreadPath) -> _ThreadKey:
    return frozenset((each.axis, each.iteration) for each in path)
