"""Compiling, which one thread does at a time, and which nobody is in the middle of when the process
forks or ends.

A child has only the thread that forked: a lock that another one held stays locked for ever, a library
that another one was in stays as it was. And when a process ends, libraries destroy what threads may
still be using. So forks, and the end of the interpreter, wait for whoever compiles; at the end the
locks are kept, and threads that begin to compile wait for the end.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Lock: TypeAlias = AbstractContextManager[Any]


class Exclusion:
    """A reentrant lock that, together with those that are included, the forking thread holds during
    each fork, and the main thread from the end of the program on.

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
        """Adds the reentrant lock of a library that is used with this one held or without it."""
        with self:
            self._locks.append(lock)

    def begin_fork(self) -> None:
        """What Python calls before each fork, unless this was made after the fork had begun: whoever
        may have waited, before a fork, for a thread that made it calls this, too."""
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
"""Held by everything that compiles or loads a kernel."""
