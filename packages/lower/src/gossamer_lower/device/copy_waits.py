"""Requires that threads of a kernel wait for asynchronous copies where a barrier can follow the wait.

A barrier that the loop over threads needs, since it reads what other threads have copied, stands before the
loop. A wait inside of the loop would come after it: each thread would know of its own copies only, unless a
barrier directly follows the wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import AsyncCopy, Barrier, CommitGroup, For, Function, Stmt, WaitGroup
from gossamer_ir.traversal.walk import contains
from gossamer_lower.device.kernel_functions import thread_loops


class _Copy(msgspec.Struct, frozen=True):
    """An asynchronous copy that a thread may not have waited for. `is_from_outside` if it began before the
    loop over threads that runs."""

    is_committed: bool = False
    is_from_outside: bool = False


_Copies: TypeAlias = frozenset[_Copy]


# Other statements: they wait for no copies.
def require_waits_after_copies(kernel: Function) -> None:
    """Raise `UnsupportedError` (`lower.insert_sync.wait`) for a wait in loops over all threads of a kernel
    if copies that began before these loops may be among those that it waits for, and no barrier follows it.

    >>> from gossamer_ir.core.build import ZERO, index
    >>> def loop(var_name, *body):
    ...     return For(var_name, ZERO, index(4), body, kind="thread_binding", thread="threadIdx.x")
    >>> copy = (AsyncCopy(()), CommitGroup())
    >>> require_waits_after_copies(Function("f", (), (loop("t", *copy, WaitGroup(0)),)))
    >>> require_waits_after_copies(Function("f", (), (loop("t", *copy), WaitGroup(0), loop("u"))))
    >>> require_waits_after_copies(Function("f", (), (loop("t", *copy), loop("u", WaitGroup(0)))))
    Traceback (most recent call last):
    gossamer_ir.errors.UnsupportedError: The threads of loop 'u' of 'f' wait for copies that they began ...
    """
    if contains(WaitGroup, *kernel.body):
        _CopyTracker(kernel).after_all(kernel.body, frozenset(), ())


class _CopyTracker:
    """Follows the copies that may be unfinished through the statements of a kernel."""

    def __init__(self, kernel: Function) -> None:
        self._name = kernel.name
        self._axes = {loop.thread for loop in thread_loops(kernel.body)}

    # Other statements: only a wait needs a barrier after it.
    def after_all(
        self, body: tuple[Stmt, ...], copies: _Copies, threads: tuple[For, ...]
    ) -> _Copies:
        """Return the copies that may be unfinished after statements in some loops over threads."""
        for stmt, following in zip(body, (*body[1:], None), strict=False):
            if isinstance(stmt, WaitGroup) and not isinstance(following, Barrier):
                self._require_begun_inside(copies, threads)
            copies = self._after(stmt, copies, threads)
        return copies

    # Other statements: they neither begin copies nor wait for them.
    def _after(self, stmt: Stmt, copies: _Copies, threads: tuple[For, ...]) -> _Copies:
        match stmt:
            case AsyncCopy():
                return copies | {_Copy()}
            case CommitGroup():
                return frozenset([replace(copy, is_committed=True) for copy in copies])
            case WaitGroup():
                return copies if stmt.pending else _uncommitted_copies(copies)
        if not contains((AsyncCopy, CommitGroup, WaitGroup), stmt):
            return copies
        inner = (*threads, stmt) if isinstance(stmt, For) and stmt.thread is not None else threads
        is_first_inside = self._has_all_axes(inner) and not self._has_all_axes(threads)
        before = _with_origin(copies, is_from_outside=True) if is_first_inside else copies
        bodies = effects_of(stmt).bodies
        after = frozenset[_Copy]().union(
            *(
                self._after_body(body, before, inner, is_repeated=inner is threads)
                for body in bodies
            )
        )
        # A condition has two bodies, one of which runs; a loop may have no iteration.
        if len(bodies) < 2 and not any(body.runs_always for body in bodies):
            after |= before
        return _with_origin(after, is_from_outside=False) if is_first_inside else after

    def _require_begun_inside(self, copies: _Copies, threads: tuple[For, ...]) -> None:
        if self._has_all_axes(threads) and any(copy.is_from_outside for copy in copies):
            raise UnsupportedError(
                "lower.insert_sync.wait",
                f"The threads of loop '{threads[-1].var}' of '{self._name}' wait for copies that they began "
                "before it, and the barrier after which they may read each other's copies is before the "
                "loop, too.",
                hint="Put 'T.wait_group' before the loop over threads, or begin the copies in the loop.",
            )

    def _after_body(
        self, body: Body, copies: _Copies, threads: tuple[For, ...], *, is_repeated: bool
    ) -> _Copies:
        after = self.after_all(body.stmts, copies, threads)
        # The next iteration begins with what this one has left.
        while body.repeats and is_repeated and not after <= copies:
            copies |= after
            after = self.after_all(body.stmts, copies, threads)
        return after

    def _has_all_axes(self, threads: Iterable[For]) -> bool:
        return self._axes <= {loop.thread for loop in threads}


def _with_origin(copies: _Copies, *, is_from_outside: bool) -> _Copies:
    return frozenset([replace(copy, is_from_outside=is_from_outside) for copy in copies])


def _uncommitted_copies(copies: _Copies) -> _Copies:
    return frozenset([copy for copy in copies if not copy.is_committed])
