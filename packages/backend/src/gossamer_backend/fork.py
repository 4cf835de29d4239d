"""The lock for compiling and loading kernels, which fork() and the end of the interpreter wait for.

A child has only the thread that forked: a lock that another thread held stays locked, and a library that
another thread was using stays in an intermediate state. At the end of a process, libraries destroy objects
that threads may still use. So forks, and the end of the interpreter, wait for threads that compile. At the
end the locks are kept: threads that start to compile block until the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Lock: TypeAlias = AbstractContextManager[Any]


class Exclusion(type(threading.RLock())):  # type: ignore[misc]  # the class has no public name
    """A reentrant lock. The forking thread holds it, with all included locks, during each fork; the main
    thread holds them from the end of the program on.

    It is a subclass because Ctrl-C is raised between bytecode instructions: in an `__enter__` of Python code,
    the lock would stay held if that happened after it was taken, and in an `__exit__` if before it is
    released. A `with` statement calls the functions of the base class, which have no such place.

    >>> with Exclusion() as is_held:
    ...     print(is_held)
    True
    """

    def __init__(self) -> None:
        super().__init__()
        self._included: list[Lock] = []
        self._fork: Generator[None] | None = None
        if hasattr(os, "register_at_fork"):
            # Python discards what a hook raises. Each is registered twice, since an interrupt that is pending
            # is raised where the first one begins.
            for _ in range(2):
                os.register_at_fork(
                    before=self.begin_fork,
                    after_in_parent=self._end_fork,
                    after_in_child=self._end_fork,
                )
        atexit.register(self._enter_all)

    def include(self, lock: Lock) -> None:
        """Add the reentrant lock of a library, which other code may also use without this one."""
        with self:
            self._included.append(lock)

    def begin_fork(self) -> None:
        """Take all locks before a fork, once per fork. Python calls this, unless the fork began before this
        object was created; a hook that may have waited for the thread that created it must call this, too."""
        held = _hold_all((self, *self._included))
        next(held)
        # The other registration, or `begin_fork`, has taken the locks already. The generator `held`
        # is dropped, which releases its second acquisition of the reentrant locks.
        if self._fork is None:
            self._fork = held

    def _end_fork(self) -> None:
        # Cleared first: another thread that forks takes the locks as soon as they are released.
        held, self._fork = self._fork, None
        if held is not None:
            held.close()

    def _enter_all(self) -> None:
        # In the same order as in a fork, so that the two cannot wait for each other.
        for lock in (self, *self._included):
            lock.__enter__()


def _hold_all(locks: Sequence[Lock]) -> Generator[None]:
    """Return a generator that takes all locks at its first step, and releases them when it is closed or
    dropped, as it is where an interrupt is raised before the caller has stored it."""
    if not locks:
        yield
        return
    with locks[0]:
        yield from _hold_all(locks[1:])


compiling = Exclusion()
"""The lock that is held while a kernel is compiled or loaded."""
