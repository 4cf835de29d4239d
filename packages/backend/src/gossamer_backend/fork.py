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
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Lock: TypeAlias = AbstractContextManager[Any]


class Exclusion:
    """A reentrant lock. The forking thread holds it, with all included locks, during each fork; the main
    thread holds them from the end of the program on.

    >>> with Exclusion() as exclusion, exclusion:
    ...     print("compiling")
    compiling
    """

    def __init__(self) -> None:
        self._locks: list[Lock] = [threading.RLock()]
        self._is_forking = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.begin_fork,
                after_in_parent=self._end_fork,
                after_in_child=self._end_fork,
            )
        atexit.register(self._enter_all)

    def include(self, lock: Lock) -> None:
        """Add the reentrant lock of a library, which other code may also use without this one."""
        with self:
            self._locks.append(lock)

    def begin_fork(self) -> None:
        """Take all locks before a fork. Python calls this, unless the fork began before this object was
        created; a hook that may have waited for the thread that created it must call this, too."""
        self._enter_all()
        if self._is_forking:
            self._leave_all()
        self._is_forking = True

    def _end_fork(self) -> None:
        if self._is_forking:
            self._is_forking = False
            self._leave_all()

    def __enter__(self) -> Exclusion:
        self._locks[0].__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._locks[0].__exit__(None, None, None)

    def _enter_all(self) -> None:
        for lock in self._locks:
            lock.__enter__()

    def _leave_all(self) -> None:
        for lock in reversed(self._locks):
            lock.__exit__(None, None, None)


compiling = Exclusion()
"""The lock that is held while a kernel is compiled or loaded."""
