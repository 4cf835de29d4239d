"""The lock for compiling and loading kernels. Forks wait for it, and for imports; so does the end of the
interpreter for the lock.

A child has only the thread that forked: a lock that another thread held stays locked, and a library that
another thread was using stays in an intermediate state. Python holds a lock of its own for each module that
a thread imports. At the end of a process, libraries destroy objects that threads may still use. So forks,
and the end of the interpreter, wait for threads that compile. At the end the locks are kept: threads that
start to compile block until the process ends.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, TypeAlias

Lock: TypeAlias = AbstractContextManager[Any]

_POLLING_SECONDS = 0.0005
_IMPORT_SYSTEM = {"importlib", "_frozen_importlib", "_frozen_importlib_external"}
"""The packages of its frames. They have the last two names until a program imports `importlib`."""


class Exclusion(type(threading.RLock())):  # type: ignore[misc]  # the class has no public name
    """A reentrant lock. The forking thread holds it, with all included locks, during each fork; the main
    thread holds them from the end of the program on. A fork also waits until no other thread imports a module
    of the project, or a module that a function of the project imports.

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
                    before=self._begin_fork,
                    after_in_parent=self._end_fork,
                    after_in_child=self._end_fork,
                )
        atexit.register(self._enter_all)

    def include(self, lock: Lock) -> None:
        """Add the reentrant lock of a library, which other code may also use without this one."""
        # Without taking this lock: modules do so while they are imported, and a thread that holds it may wait
        # for such an import.
        self._included.append(lock)

    def _begin_fork(self) -> None:
        """Take all locks before a fork, at a time when no other thread imports."""
        while True:
            _wait_for_imports()
            held = _hold_all((self, *self._included))
            next(held)
            # Imports began while this thread waited for the locks, and may need them.
            if not _is_importing_elsewhere():
                break
            held.close()
        # The other registration has taken the locks already. The generator `held` is dropped, which releases
        # its second acquisition of the reentrant locks.
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
    """Take all locks at the first step, and release them when the generator is closed or dropped, as it is
    where an interrupt is raised before the caller has stored it."""
    if not locks:
        yield
        return
    with locks[0]:
        yield from _hold_all(locks[1:])


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module for the project."""
    # A thread that has just resumed runs on for the switch interval of the interpreter, milliseconds, unless
    # it waits: no import can begin between the last look and the fork.
    time.sleep(0)
    while _is_importing_elsewhere():
        time.sleep(_POLLING_SECONDS)


def _is_importing_elsewhere() -> bool:
    this = threading.get_ident()
    frames = sys._current_frames()
    # At once: an exception would keep the frames of this thread, and what they hold, in a cycle.
    del frames[this]
    return any(map(_is_importing, frames.values()))


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether the import system runs a module of the project, or a function of the project called it.

    Calls that a user's module makes while it is imported do not count: they may last as long as the program.
    """
    package = ""
    while frame is not None:
        callee, package = package, str(frame.f_globals.get("__name__")).partition(".")[0]
        neighbours = (callee, package)
        if not _IMPORT_SYSTEM.isdisjoint(neighbours) and any(
            name.startswith("gossamer") for name in neighbours
        ):
            return True
        frame = frame.f_back
    return False


compiling = Exclusion()
"""The lock that is held while a kernel is compiled or loaded."""
