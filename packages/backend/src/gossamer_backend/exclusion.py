"""Compiling, which one thread does at a time, and which nobody is in the middle of when the process
forks or ends.

A child has only the thread that forked: a lock that another one held stays locked for ever, a library
that another one was in stays as it was. And when a process ends, libraries destroy what threads may
still be using. So forks, and the end of the interpreter, wait for whoever compiles; at the end the
lock is kept, and threads that begin to compile wait for the end.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import ContextDecorator

PAUSE = 1e-4
"""Seconds between two looks at whether a library is in use."""


class Exclusion(ContextDecorator):
    """A reentrant lock that the forking thread holds during each fork, and the main thread from the end
    of the program on. A function that it decorates runs, and frees its variables, with the lock held.

    >>> exclusion = Exclusion()
    >>> @exclusion
    ... def compile():
    ...     with exclusion:
    ...         print("compiling")
    >>> compile()
    compiling
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._in_use: list[Callable[[], bool]] = []
        self._is_forking = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.begin_fork,
                after_in_parent=self._end_fork,
                after_in_child=self._end_fork,
            )
        atexit.register(self._lock.acquire)

    def include(self, is_in_use: Callable[[], bool]) -> None:
        """Forks also wait until no other thread is inside of a library that others use without this lock.

        A thread that uses the library with this lock held is never inside when the process forks. One
        without it may enter between the last look and the fork: only the lock of the library itself
        could prevent that.
        """
        with self:
            self._in_use.append(is_in_use)

    def begin_fork(self) -> None:
        """What Python calls before each fork, unless this was made after the fork had begun: whoever
        may have waited, before a fork, for a thread that made it calls this, too."""
        self._lock.acquire()
        if self._is_forking:
            self._lock.release()
        self._is_forking = True
        while any(is_in_use() for is_in_use in self._in_use):
            time.sleep(PAUSE)

    def _end_fork(self) -> None:
        if self._is_forking:
            self._is_forking = False
            self._lock.release()

    def __enter__(self) -> Exclusion:
        self._lock.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


compiling = Exclusion()
"""Held by everything that compiles or loads a kernel."""
