"""The thread that runs, and whether two threads do so in an order."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.thread_axes import is_block_axis
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.interpret.threads.pending_copies import PendingCopies, RunningThread
from gossamer_ir.nodes import ReduceOp, Stmt, ThreadTag
from gossamer_ir.traversal.statement_queries import names_bound


class ThreadIteration(msgspec.Struct, frozen=True):
    """An iteration of a loop that is bound to an axis of threads. `run` numbers the executions of such loops,
    `extent` is the number of iterations."""

    var: str
    iteration: int
    run: int
    axis: ThreadTag
    extent: int

    @property
    def is_block(self) -> bool:
        """True if it is one of blocks, which do not wait for each other."""
        return is_block_axis(self.axis)

    @property
    def text(self) -> str:
        """The iteration, for errors: `t = 3`."""
        return f"{self.var} = {self.iteration}"


ThreadPath: TypeAlias = tuple[ThreadIteration, ...]
"""The iterations around a statement, from the outermost loop to the innermost."""


def thread_in_block(path: ThreadPath) -> tuple[int, int]:
    """Return the number of a thread in its block, counted along x, y and z, and the number of all threads.

    >>> x, y = (ThreadIteration(axis, 2, 1, f"threadIdx.{axis}", 8) for axis in "xy")
    >>> thread_in_block((y, x))
    (18, 64)
    """
    number, count = 0, 1
    for thread in sorted(path, key=lambda iteration: iteration.axis):
        if not thread.is_block:
            number, count = number + thread.iteration * count, count * thread.extent
    return number, count


class RunningStmt(msgspec.Struct, frozen=True):
    """A statement that accesses memory. One that accumulates by `op` does so into the buffer `accumulated`,
    and atomically if `is_atomic`."""

    node: Stmt
    accumulated: str | None = None
    op: ReduceOp | None = None
    is_atomic: bool = False

    @property
    def text(self) -> str:
        """The statement, for errors."""
        writes, names = effects_of(self.node).writes, names_bound(self.node)
        if writes:
            return f"the store to '{writes[0].buffer}'"
        kind = type(self.node).__name__
        return f"the {kind} of '{names[0]}'" if names else f"the {kind}"


class Moment(msgspec.Struct, frozen=True):
    """The time at which a statement runs: its thread, and the number of barriers of its block before it."""

    path: ThreadPath
    barriers: int
    stmt: RunningStmt | None


class ThreadGrid:
    """The state of the threads of a running function: the moment, the number of loops over threads that have
    run, whether the running store is an asynchronous copy, and the copies that are not complete. In a kernel,
    which was launched, only barriers order what threads do in two loops; elsewhere the loops do."""

    __slots__ = ("barriers", "copies", "is_copying", "is_kernel", "path", "runs", "stmt")

    def __init__(self) -> None:
        self.path: ThreadPath = ()
        self.barriers = 0
        self.runs = 0
        self.stmt: RunningStmt | None = None
        self.is_copying = False
        self.is_kernel = False
        self.copies: PendingCopies[Any] = PendingCopies()

    def new_run(self) -> int:
        """Return a number for an execution of a loop."""
        self.runs += 1
        return self.runs

    def moment(self) -> Moment:
        """Return the present moment."""
        return Moment(self.path, self.barriers, self.stmt)

    @property
    def thread(self) -> RunningThread:
        """The numbers of the running thread along axes."""
        return frozenset((iteration.axis, iteration.iteration) for iteration in self.path)


def concurrent_iterations(
    one: Moment, other: Moment, *, in_block: bool = False, in_kernel: bool = False
) -> tuple[ThreadIteration, ThreadIteration] | None:
    """Return the iterations of loops that are at both moments, if nothing orders them; else None.

    `in_block`: each block has its own copy of what is accessed. `in_kernel`: two loops do not order threads.

    >>> def moment(iteration, *, barriers):
    ...     return Moment((ThreadIteration("t", iteration, 1, "threadIdx.x", 8),), barriers, None)
    >>> concurrent_iterations(moment(0, barriers=0), moment(1, barriers=0))[1].text
    't = 1'
    >>> concurrent_iterations(moment(0, barriers=0), moment(1, barriers=1)) is None
    True
    """
    for left, right in zip(
        _within(one.path, in_block), _within(other.path, in_block), strict=False
    ):
        if left.run != right.run:
            return _unordered_threads(one, other, in_block=in_block) if in_kernel else None
        if left.iteration != right.iteration:
            # Barriers order the threads of a block, and not those of different blocks.
            is_ordered = one.barriers != other.barriers and not left.is_block
            return None if is_ordered else (left, right)
    is_in_one_loop_more = in_kernel and not in_block and len(one.path) != len(other.path)
    return _iterations_of_blocks(one, other) if is_in_one_loop_more else None


def _iterations_of_blocks(
    one: Moment, other: Moment
) -> tuple[ThreadIteration, ThreadIteration] | None:
    """Return the iteration of a loop over blocks that is at one of two moments of a kernel only, and the next
    one, in which a block does what it does at the other moment, as every block does; else None."""
    for path, axes in ((one.path, _axes(other)), (other.path, _axes(one))):
        for iteration in path:
            if iteration.is_block and iteration.extent > 1 and iteration.axis not in axes:
                following = (iteration.iteration + 1) % iteration.extent
                pair = iteration, replace(iteration, iteration=following)
                return pair if path is one.path else (pair[1], pair[0])
    return None


def _axes(moment: Moment) -> set[ThreadTag]:
    return {iteration.axis for iteration in moment.path}


def _unordered_threads(
    one: Moment, other: Moment, *, in_block: bool
) -> tuple[ThreadIteration, ThreadIteration] | None:
    """Return the iterations of two loops of a kernel that are different blocks, or different threads of one
    block without a barrier between them; else None."""
    numbers = {iteration.axis: iteration for iteration in one.path}
    pairs = [
        (numbers[iteration.axis], iteration)
        for iteration in other.path
        if iteration.axis in numbers
    ]
    different = [pair for pair in pairs if pair[0].iteration != pair[1].iteration]
    block_pairs = [pair for pair in different if pair[0].is_block]
    if block_pairs:
        return None if in_block else block_pairs[0]
    iterations = None if in_block else _iterations_of_blocks(one, other)
    if iterations is not None:
        return iterations
    return different[0] if different and one.barriers == other.barriers else None


def _within(path: ThreadPath, in_block: bool) -> ThreadPath:  # noqa: FBT001  (of this file)
    return tuple([iteration for iteration in path if not iteration.is_block]) if in_block else path
