"""The groups of asynchronous copies that threads have not waited for."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

RunningThread: TypeAlias = frozenset[tuple[str, int]]
"""The numbers of a thread along axes: two loops over threads run the same threads. Without those along the
axes of a block it stands for all threads of the block."""


class PendingCopies(Generic[T]):
    """The copies of each thread: those that it has begun, and groups of them.

    >>> copies, first = PendingCopies(), frozenset({("threadIdx.x", 0)})
    >>> copies.begin(first, "first")
    >>> copies.commit(first)
    >>> copies.begin(first, "second")
    >>> copies.commit(frozenset())
    >>> copies.wait(first, 1), copies.wait(frozenset(), 0)
    (['first'], ['second'])
    """

    def __init__(self) -> None:
        self._begun: dict[RunningThread, list[T]] = {}
        self._groups: dict[RunningThread, list[list[T]]] = {}

    def begin(self, thread: RunningThread, copied: T) -> None:
        """Add the elements that a thread copies."""
        self._begun.setdefault(thread, []).append(copied)

    def commit(self, thread: RunningThread) -> None:
        """Make a group of the copies that a thread has begun."""
        for key in self._threads_at(thread):
            self._groups.setdefault(key, []).append(self._begun.pop(key, []))

    def wait(self, thread: RunningThread, pending: int) -> list[T]:
        """Return the copies of a thread in all of its groups but the last `pending` ones."""
        complete: list[T] = []
        for key in self._threads_at(thread):
            groups = self._groups.get(key, [])
            count = max(0, len(groups) - pending)
            complete += [copied for group in groups[:count] for copied in group]
            del groups[:count]
        return complete

    def _threads_at(self, thread: RunningThread) -> set[RunningThread]:
        """Return this thread, and those that it stands for and that have copied something. Older groups of
        others are empty, and complete first."""
        return {key for key in (*self._begun, *self._groups) if thread <= key} | {thread}
