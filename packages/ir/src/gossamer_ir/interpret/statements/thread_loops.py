"""Loops over the threads of a grid. If threads wait for each other, each of them runs in steps.

A step ends where a thread waits. A loop over threads runs a step of each of its iterations, and then waits
itself if they do. The outermost loop over the threads of a block lets them go on together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.statement_kinds import SYNCHRONIZING_STMTS, effects_of
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.memory.values import decode_elements, garbage_array
from gossamer_ir.interpret.statements.parallel_chunks import iterations_of
from gossamer_ir.interpret.threads.grid import ThreadIteration, ThreadPath, thread_in_block
from gossamer_ir.interpret.translator import EnclosingStmt, Translator
from gossamer_ir.nodes import Barrier, For, If, Shuffle, Stmt, While
from gossamer_ir.traversal.statement_queries import threads_of
from gossamer_ir.traversal.walk import contains


class _WaitingThread:
    """A thread that waits at a barrier or a shuffle, with the value that it has for others. `absent` is an
    iteration of a loop around it that has ended, `rounds` are the numbers of iterations that loops around it
    have begun."""

    __slots__ = ("absent", "may_go_on", "node", "path", "received", "rounds", "value")

    def __init__(self, node: Barrier | Shuffle, path: ThreadPath, value: Any = None) -> None:
        self.node, self.path, self.value = node, path, value
        self.received: Any = None
        self.absent: ThreadIteration | None = None
        self.rounds: dict[int, int] = {}
        self.may_go_on = False

    @property
    def where(self) -> str:
        """The iterations of the thread, for errors."""
        return ", ".join(iteration.text for iteration in self.path)


Waiting: TypeAlias = tuple[_WaitingThread, ...]
Steps: TypeAlias = Callable[[Frame], Iterator[Waiting]]
"""Runs statements; yields the threads that wait after each step."""


def thread_loop(node: For, translator: Translator) -> Exec:
    """Return a loop over blocks or threads as a function of the frame."""
    if _is_of_block(node) and contains(SYNCHRONIZING_STMTS, *node.body):
        return _synchronize_threads(_steps_of_threads(node, translator))
    enclosing, iterations = EnclosingStmt(node), _numbered_iterations(node, translator)
    body = translator.body(node.body, enclosing)
    hoisted = tuple(enclosing.hoisted)

    def run(frame: Frame) -> None:
        for init in hoisted:
            init(frame)
        grid, outer = frame.grid, frame.grid.path
        for iteration in iterations(frame):
            grid.path = (*outer, iteration)
            frame.values[node.var] = np.int64(iteration.iteration)
            body(frame)
        grid.path = outer

    return run


def _numbered_iterations(
    node: For, translator: Translator
) -> Callable[[Frame], Iterator[ThreadIteration]]:
    iterations, axis = iterations_of(node, translator), node.thread
    assert axis is not None

    def thread_iterations(frame: Frame) -> Iterator[ThreadIteration]:
        run, numbers = frame.grid.new_run(), [*map(int, iterations(frame))]
        for number in numbers:
            yield ThreadIteration(node.var, number, run, axis, len(numbers))

    return thread_iterations


def _is_of_block(node: For) -> bool:
    return is_thread_axis(node.thread)


def _synchronize_threads(steps: Steps) -> Exec:
    """Return steps as a function of the frame that lets threads go on when all of a block wait."""

    def run(frame: Frame) -> None:
        for waiting in steps(frame):
            shuffling = [thread for thread in waiting if threads_of(thread.node).exchanges]
            if shuffling:
                _exchange_values(shuffling)
            else:
                _pass_barrier(waiting)
                frame.grid.barriers += 1

    return run


def _exchange_values(waiting: Iterable[_WaitingThread]) -> None:
    """Let the threads of groups go on of which all have reached a shuffle."""
    groups: dict[tuple[int, int], dict[int, _WaitingThread]] = {}
    for thread in waiting:
        number, _ = thread_in_block(thread.path)
        key = id(thread.node), number // _shuffle_of(thread).width
        groups.setdefault(key, {})[number] = thread
    complete = [group for group in groups.values() if _is_complete(group)]
    if not complete:
        thread = next(iter(waiting))
        raise InterpreterError(
            f"The thread at {thread.where} waits at a shuffle that other threads of its group do not reach."
        )
    for group in complete:
        for number, thread in group.items():
            _receive(thread, number, group)


def _is_complete(group: Mapping[int, _WaitingThread]) -> bool:
    number, thread = next(iter(group.items()))
    _, count = thread_in_block(thread.path)
    width = _shuffle_of(thread).width
    first = number // width * width
    return len(group) == min(first + width, count) - first


def _receive(thread: _WaitingThread, number: int, group: Mapping[int, _WaitingThread]) -> None:
    node = _shuffle_of(thread)
    sender = group.get(number ^ node.offset if node.op == "xor" else number + node.offset)
    if sender is None:
        thread.received = decode_elements(garbage_array((1,), node.var.dtype), node.var.dtype)[0]
    else:
        thread.received = sender.value
    thread.may_go_on = True


def _shuffle_of(thread: _WaitingThread) -> Shuffle:
    assert isinstance(thread.node, Shuffle)
    return thread.node


def _pass_barrier(waiting: Waiting) -> None:
    """Let all threads of a block go on, which must wait at one barrier, in the same iterations of loops."""
    first = waiting[0]
    for thread in waiting:
        other = f" at {thread.absent.text}" if thread.absent is not None else ""
        if other or thread.node is not first.node or thread.rounds != first.rounds:
            raise InterpreterError(
                f"The thread at {thread.where} waits at a barrier that the thread"
                f"{other or 's of its block'} {'does' if other else 'do'} not reach."
            )
    for thread in waiting:
        thread.may_go_on = True


def _steps_of_body(body: Iterable[Stmt], translator: Translator) -> Steps:
    parts = tuple([_steps_of_stmt(stmt, translator) for stmt in body])

    def steps(frame: Frame) -> Iterator[Waiting]:
        for part in parts:
            yield from part(frame)

    return steps


def _steps_of_stmt(stmt: Stmt, translator: Translator) -> Steps:
    """Return a statement as steps. One at which no thread waits is part of a step."""
    if contains(SYNCHRONIZING_STMTS, stmt):
        if type(stmt) not in _STEPS:
            raise InterpreterError(f"A '{type(stmt).__name__}' around a barrier.")
        return _STEPS[type(stmt)](stmt, translator)
    run = translator.body((stmt,))

    def steps(frame: Frame) -> Iterator[Waiting]:
        run(frame)
        yield from ()

    return steps


def _steps_of_barrier(node: Barrier, translator: Translator) -> Steps:
    def steps(frame: Frame) -> Iterator[Waiting]:
        thread = _WaitingThread(node, frame.grid.path)
        while not thread.may_go_on:
            yield (thread,)

    return steps


def _steps_of_shuffle(node: Shuffle, translator: Translator) -> Steps:
    value = translator.expr(node.value)

    def steps(frame: Frame) -> Iterator[Waiting]:
        thread = _WaitingThread(node, frame.grid.path, value(frame))
        while not thread.may_go_on:
            yield (thread,)
        frame.values[node.var.name] = thread.received

    return steps


def _steps_of_if(node: If, translator: Translator) -> Steps:
    condition = translator.expr(node.condition)
    then_body, else_body = (
        _steps_of_body(body.stmts, translator) for body in effects_of(node).bodies
    )

    def steps(frame: Frame) -> Iterator[Waiting]:
        yield from (then_body if condition(frame) else else_body)(frame)

    return steps


def _steps_of_while(node: While, translator: Translator) -> Steps:
    condition, body = translator.expr(node.condition), _steps_of_body(node.body, translator)

    def steps(frame: Frame) -> Iterator[Waiting]:
        for round_number in count():
            if not condition(frame):
                return
            yield from _in_round(body(frame), node, round_number)

    return steps


def _steps_of_loop(node: For, translator: Translator) -> Steps:
    if _is_of_block(node):
        return _steps_of_threads(node, translator)
    body, iterations = _steps_of_body(node.body, translator), iterations_of(node, translator)

    def steps(frame: Frame) -> Iterator[Waiting]:
        for round_number, number in enumerate(iterations(frame)):
            frame.values[node.var] = number
            yield from _in_round(body(frame), node, round_number)

    return steps


def _in_round(steps: Iterator[Waiting], loop: For | While, round_number: int) -> Iterator[Waiting]:
    """Yield what an iteration of a loop yields, with its number in the threads that wait."""
    for waiting in steps:
        for thread in waiting:
            thread.rounds[id(loop)] = round_number
        yield waiting


def _steps_of_threads(node: For, translator: Translator) -> Steps:
    """Return a loop over threads as steps, each of which is a step of all its iterations."""
    body, iterations = _steps_of_body(node.body, translator), _numbered_iterations(node, translator)

    def steps(frame: Frame) -> Iterator[Waiting]:
        outer, absent = frame.grid.path, None
        running = [
            (iteration, body(_frame_of(frame, iteration))) for iteration in iterations(frame)
        ]
        while running:
            waiting: list[_WaitingThread] = []
            for iteration, thread_steps in tuple(running):
                frame.grid.path = (*outer, iteration)
                threads = next(thread_steps, None)
                if threads is None:
                    absent = iteration
                    running.remove((iteration, thread_steps))
                waiting += threads or ()
            frame.grid.path = outer
            for thread in waiting:
                thread.absent = thread.absent or absent
            if waiting:
                yield tuple(waiting)

    return steps


def _frame_of(frame: Frame, iteration: ThreadIteration) -> Frame:
    thread_frame = frame.thread_frame()
    thread_frame.values[iteration.var] = np.int64(iteration.iteration)
    return thread_frame


_STEPS: dict[type[Any], Callable[[Any, Translator], Steps]] = {
    Barrier: _steps_of_barrier,
    Shuffle: _steps_of_shuffle,
    If: _steps_of_if,
    While: _steps_of_while,
    For: _steps_of_loop,
}
